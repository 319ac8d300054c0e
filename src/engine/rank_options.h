// What the options say of ranks.
#pragma once

#include <memory>

#include "api/options.h"
#include "base/communicator.h"
#include "base/result.h"

namespace valora {

// kInvalidArgument or kUnprocessable for what is not served on ranks, as far as the options tell.
Status check_rank_options(const EngineOptions& options);
// Gives each rank's thread, as those that are made from now on, its part of the compute threads.
void split_threads(const EngineOptions& options);
// Null with one rank. After split_threads().
std::unique_ptr<Communicator> make_communicator(const EngineOptions& options);

}  // namespace valora
