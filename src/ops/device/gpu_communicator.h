// Collectives of ranks that are threads of one process, each with its own GPU.
#pragma once

#include <memory>
#include <string>

#include "base/threads/communicator.h"

namespace valora::ops {

// Why this build has no GPU communicator, as a clause; empty if it has one.
std::string why_no_gpu_communicator();
// A communicator for ranks on GPUs 0, 1, …: each rank's thread launches its collectives on the
// current stream of its GPU, and they may be captured. Throws c10::Error or RankLostError if the
// GPUs fail to connect.
std::unique_ptr<Communicator> make_gpu_communicator(int ranks);

}  // namespace valora::ops
