// What the options say of ranks.
#pragma once

#include <memory>

#include "api/options.h"
#include "base/communicator.h"
#include "base/core_sets.h"
#include "base/result.h"

namespace valora {

// kInvalidArgument or kUnprocessable for what is not served on ranks, as far as the options tell.
Status check_rank_options(const EngineOptions& options);
// The CPUs of each rank; empty: any. nodes: of this machine (numa_nodes()). kInvalidArgument for
// sets that are not one per rank, or that this process may not use.
Result<std::vector<CoreSet>> rank_cores(const EngineOptions& options,
                                        const std::vector<CoreSet>& nodes);
// Gives each rank's thread, as those that are made from now on, its part of the compute threads:
// one for each of its cores, of the rank that has the fewest, if --threads does not say how many.
void split_threads(const EngineOptions& options, const std::vector<CoreSet>& cores);
// Null with one rank. After split_threads().
std::unique_ptr<Communicator> make_communicator(const EngineOptions& options);

}  // namespace valora
