#include "lab/ops/bandwidth_loop.h"

#include "kernels/cpu/isa/clones.h"

namespace valora::bench {

VALORA_CLONES float sum_floats(const float* values, int64_t count) {
  constexpr int kLanes = 128;  // enough independent sums to hide the addition latency
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int j = 0; j < kLanes; ++j) sums[j] += values[i + j];
  for (; i < count; ++i) sums[0] += values[i];
  float sum = 0;
  for (const float s : sums) sum += s;
  return sum;
}

}  // namespace valora::bench
