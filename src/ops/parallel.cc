#include "ops/parallel.h"

#include <ATen/Parallel.h>

namespace valora::ops {

const ParallelFor& torch_parallel() {
  static const ParallelFor parallel = [](int64_t begin, int64_t end, int64_t grain, const ParallelBody& body) {
    at::parallel_for(begin, end, grain, body);
  };
  return parallel;
}

}  // namespace valora::ops
