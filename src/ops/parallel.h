// libtorch's thread pool, the only compute pool, as the ParallelFor that torch-free kernels take.
#pragma once

#include "base/parallel.h"

namespace valora::ops {

const ParallelFor& torch_parallel();

// Ends the calling thread's helpers; its next parallel work starts others. Where the helpers of all
// threads are more than the cores, OpenMP lets each of them sleep at once between two pieces of
// work, which makes small ones take twice as long.
void release_threads();

}  // namespace valora::ops
