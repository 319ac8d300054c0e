// Interprets the options about ranks.
#pragma once

#include <memory>

#include "api/options.h"
#include "base/machine/core_sets.h"
#include "base/result.h"
#include "base/threads/communicator.h"

namespace valora {

// kInvalidArgument or kUnprocessable if ranks do not support the configuration, as far as the
// options and the machine's devices show.
Status check_rank_options(const EngineOptions& options);
// The CPUs of each rank; empty: any. nodes: this machine's (numa_nodes()). kInvalidArgument if the
// sets are not one per rank, or contain CPUs that this process may not use.
Result<std::vector<CoreSet>> rank_cores(const EngineOptions& options,
                                        const std::vector<CoreSet>& nodes);
// Sets the number of compute threads per rank, for this thread and those created later: without
// --threads, as many as the smallest core set has CPUs; otherwise an equal share of all threads.
void split_threads(const EngineOptions& options, const std::vector<CoreSet>& cores);
// Null with one rank. Must be called after split_threads(). Throws c10::Error or RankLostError if
// the GPUs fail to connect.
std::unique_ptr<Communicator> make_communicator(const EngineOptions& options);

}  // namespace valora
