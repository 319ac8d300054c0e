#include "kernels/logits.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/elementwise/elementwise.h"

namespace valora::kernels {

Argmax argmax(std::span<const float> x) { return argmax(x.data(), static_cast<int64_t>(x.size())); }

void keep_allowed(std::span<float> x, std::span<const uint32_t> allowed) {
  const size_t known = std::min(x.size(), allowed.size() * 32);
  keep_allowed(x.data(), static_cast<int64_t>(known), allowed.data());
  std::ranges::fill(x.subspan(known), -std::numeric_limits<float>::infinity());
}

}  // namespace valora::kernels
