#include "ops/device/parallel.h"

#include <ATen/Parallel.h>
#include <omp.h>

namespace valora::ops {

const ParallelFor& torch_parallel() {
  static const ParallelFor parallel = [](int64_t begin, int64_t end, int64_t grain,
                                         const ParallelBody& body) {
    at::parallel_for(begin, end, grain, body);
  };
  return parallel;
}

void release_threads() { omp_pause_resource(omp_pause_soft, omp_get_initial_device()); }

}  // namespace valora::ops
