#include "lab/ops/random_tensors.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

namespace valora::bench {

at::Tensor normal_tensor(at::IntArrayRef sizes, at::ScalarType dtype, double scale, uint64_t seed) {
  constexpr int64_t kSample = (int64_t{1} << 18) + 7;  // odd, so that rows of a matrix differ
  const int64_t count = c10::multiply_integers(sizes), drawn = std::min(count, kSample);
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const at::Tensor sample = (at::randn({drawn}, generator, at::kFloat) * scale).to(dtype);
  if (drawn == count) return sample.view(sizes);
  return sample.repeat({(count + drawn - 1) / drawn}).narrow(0, 0, count).contiguous().view(sizes);
}

}  // namespace valora::bench
