// libtorch's thread pool, the only compute pool, as the ParallelFor that torch-free kernels take.
#pragma once

#include "base/parallel.h"

namespace valora::ops {

const ParallelFor& torch_parallel();

}  // namespace valora::ops
