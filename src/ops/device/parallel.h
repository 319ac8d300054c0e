// libtorch's thread pool, the only compute pool, as a ParallelFor for the torch-free kernels.
#pragma once

#include "base/threads/parallel.h"

namespace valora::ops {

const ParallelFor& torch_parallel();

// Ends the OpenMP workers of the calling thread; its next parallel launch starts new ones. If there
// are more OpenMP workers than cores, counting all threads, OpenMP puts idle workers to sleep
// immediately, which doubles the time of small launches.
void release_threads();

}  // namespace valora::ops
