#include <algorithm>
#include <atomic>

#include "kernels/cpu/product/integer_panels.h"
#include "kernels/cpu/product/quantise.h"
#include "kernels/types/packed.h"
#include "ops/device/parallel.h"
#include "ops/weights/quantised_tensor.h"

namespace valora::ops {
namespace {

int64_t group_of(int64_t in, const Quantisation& to) {
  return std::clamp<int64_t>(to.group, 1, std::max<int64_t>(in, 1));
}

}  // namespace

QuantisedTensor quantise(const at::Tensor& w, const Quantisation& to) {
  TORCH_CHECK(w.dim() == 2 && w.is_cpu(), "quantise: a weight of ", w.sizes(), " on ", w.device());
  const int64_t out = w.size(0), in = w.size(1), group = group_of(in, to),
                groups = (in + group - 1) / group;
  QuantisedTensor q{at::empty({out, in}, at::kByte), to.bits, at::empty({out, groups}, at::kFloat),
                    at::full({out, groups}, kernels::middle_of(to.bits), at::kByte), group};
  auto* const values = q.values.mutable_data_ptr<uint8_t>();
  auto* const scales = q.scales.mutable_data_ptr<float>();
  std::atomic<bool> finite = true;
  torch_parallel()(0, out, 16, [&](int64_t begin, int64_t end) {
    constexpr int64_t kRows = 16;
    for (int64_t row = begin; row < end; row += kRows) {
      const int64_t count = std::min(kRows, end - row);
      const at::Tensor rows = w.narrow(0, row, count).to(at::kFloat).contiguous();
      for (int64_t i = 0; i < count; ++i)
        if (!kernels::quantise_row(rows.const_data_ptr<float>() + i * in, in, to.bits, group,
                                   values + (row + i) * in, scales + (row + i) * groups))
          finite = false;
    }
  });
  TORCH_CHECK(finite, "has values that are not finite, which integers cannot represent");
  return q;
}

size_t quantised_bytes(int64_t out, int64_t in, const Quantisation& to, bool float_scales,
                       bool minimums) {
  return static_cast<size_t>(kernels::integer_bytes(
      kernels::integer_layout(out, in, to.bits, group_of(in, to), float_scales, false, minimums)));
}

}  // namespace valora::ops
