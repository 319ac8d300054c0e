// Limits what a request with several prompts copies for each prompt.
#pragma once

#include "base/result.h"
#include "server/openai/requests.h"

namespace valora::server {

// kInvalidArgument if a small body would take much memory because every prompt gets its own copy of
// the sampling parameters and of the answer's form. Names the larger field.
Status check_copies(const GenerationBody& body);

}  // namespace valora::server
