// Integers of bitsandbytes in 8 bits (LLM.int8).
#include "models/quantised/stored_linear.h"

namespace valora::models {

StoredLinear read_rows(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                       int64_t in) {
  // bitsandbytes' own constant, which is not 1 / 127 to the last bit.
  constexpr float kInverseRange = 7.874015718698502e-3f;
  constexpr int kMiddle = 128;
  const at::Tensor stored = tensors.take("weight", {DType::kI8}, {{out, in}}),
                   largest = tensors.take_scales("SCB", {{out}});
  if (tensors.has("weight_format")) {
    const at::Tensor format = tensors.take("weight_format", {DType::kU8}, {{}, {1}});
    if (format.defined() && format.item<uint8_t>() != 0)
      tensors.fail("weight_format", "is not 0: the weights are in an order made for certain GPUs");
  }
  if (!stored.defined()) return {};
  return {ops::QuantisedTensor{.values = (stored.view(at::kByte) + kMiddle).contiguous(),
                               .bits = scheme.bits,
                               .scales = (largest * kInverseRange).view({out, 1}),
                               .zeros = at::full({out, 1}, kMiddle, at::kByte),
                               .group = in},
          {}};
}

}  // namespace valora::models
