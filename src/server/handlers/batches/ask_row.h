// Asks the server's handlers as a client would, without HTTP: a row of a batch is answered by what
// answers a live request.
#pragma once

#include <memory>

#include "server/batches/row_run.h"
#include "server/handlers/service.h"

namespace valora::server {

// The request's path must be one of batch_endpoints().
AskRow ask_through(std::shared_ptr<Service> service);

}  // namespace valora::server
