#include "ops/weights/weight_cpu.h"

#include "kernels/cpu/product/byte_product.h"
#include "ops/device/huge_memory.h"
#include "ops/device/parallel.h"

namespace valora::ops {

void pack_cpu(const at::Tensor& w, const at::Tensor& panels) {
  with_cpu_type(w, [&](auto t) {
    using T = decltype(t);
    kernels::pack_panels<T>(raw<T>(w), w.size(0), w.size(1), raw<T>(panels), torch_parallel());
  });
}

int64_t panel_elements_cpu(int64_t out, int64_t in, at::ScalarType dtype) {
  return with_cpu_type(dtype,
                       [&](auto t) { return kernels::packed_elements<decltype(t)>(out, in); });
}

std::pair<at::Tensor, std::shared_ptr<const IntegerWeight>> pack_integers_cpu(
    const QuantisedTensor& w, bool byte_inputs) {
  TORCH_CHECK(kernels::is_integer_group(w.group, w.in()), "groups of ", w.group, " of ", w.in(),
              " inputs; groups are a multiple of 8 inputs, or all of them");
  const auto* scales = w.scales.const_data_ptr<float>();
  auto integers = std::make_shared<IntegerWeight>();
  const bool least = w.minimums.defined(), zeros = !least && !w.symmetric();
  kernels::IntegerPanels& panels = integers->panels = kernels::integer_layout(
      w.out(), w.in(), w.bits, w.group, !kernels::fit_bf16(scales, w.scales.numel()), zeros, least);
  if (byte_inputs) panels.input_block = kernels::input_block(w.group, w.in());
  at::Tensor bytes = huge_zeros(kernels::integer_bytes(panels), at::kByte);
  auto* const data = bytes.mutable_data_ptr<uint8_t>();
  const kernels::GroupParts parts{scales, zeros ? w.zeros.const_data_ptr<uint8_t>() : nullptr,
                                  least ? w.minimums.const_data_ptr<float>() : nullptr};
  kernels::pack_integers(panels, w.values.const_data_ptr<uint8_t>(), parts, data, torch_parallel());
  panels.data = data;
  return {std::move(bytes), std::move(integers)};
}

std::shared_ptr<const IntegerWeight> rounding_rows_cpu(const IntegerWeight& w,
                                                       const InputRounding& rounding) {
  if (rounding.grid != InputRounding::Grid::kInt8) return nullptr;
  auto rounds = std::make_shared<IntegerWeight>(w);
  rounds->panels.input_block = w.panels.k;
  rounds->panels.row_rounding = {rounding.scale};
  return rounds;
}

at::Tensor pack_cpu(const at::Tensor& w) {
  at::Tensor panels =
      huge_zeros(panel_elements_cpu(w.size(0), w.size(1), w.scalar_type()), w.scalar_type());
  pack_cpu(w, panels);
  return panels;
}

at::Tensor unpack_cpu(const Weight& w) {
  if (const kernels::IntegerPanels* integers = integers_of(w)) {
    at::Tensor values = at::empty({w.out(), w.in()}, at::kFloat);
    kernels::decode_integers(*integers, values.mutable_data_ptr<float>(), torch_parallel());
    return values;
  }
  at::Tensor values = at::empty({w.out(), w.in()}, w.data().options());
  with_cpu_type(values, [&](auto t) {
    using T = decltype(t);
    kernels::unpack_panels<T>(panels_of<T>(w), raw<T>(values));
  });
  return values;
}

}  // namespace valora::ops
