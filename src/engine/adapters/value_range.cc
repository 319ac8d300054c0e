#include "engine/adapters/value_range.h"

#include <fmt/format.h>

#include <cmath>

#include "adapters/tensors/tensor_values.h"
#include "engine/start/dtype.h"

namespace valora {
namespace {

// The largest magnitude after rounding.
float rounded_magnitude(float largest, at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf: return static_cast<float>(static_cast<at::Half>(largest));
    case at::kBFloat16: return static_cast<float>(static_cast<at::BFloat16>(largest));
    default: return largest;
  }
}

// The range of a 16-bit type is smaller than that of fp32, and fp16's smaller than bf16's.
bool may_overflow(DType stored, at::ScalarType dtype) {
  return (stored == DType::kF32 && dtype != at::kFloat) ||
         (stored == DType::kBF16 && dtype == at::kHalf);
}

}  // namespace

bool overflows(const TensorView& tensor, at::ScalarType dtype) {
  return may_overflow(tensor.dtype, dtype) && !tensor.bytes.empty() &&
         std::isinf(rounded_magnitude(adapters::largest_of(tensor), dtype));
}

Status check_range(const adapters::AdapterSpec& spec, const adapters::ModuleTable& modules,
                   at::ScalarType dtype) {
  for (const adapters::LoraTarget& target : spec.targets)
    for (const TensorView* half : {&target.a, &target.b})
      if (overflows(*half, dtype))
        return unprocessable(
            fmt::format("{} of {} has values up to {:.3g}, which are infinite in {}: every answer "
                        "would be NaN",
                        half == &target.a ? "lora_A" : "lora_B",
                        modules.modules()[static_cast<size_t>(target.module)].name,
                        adapters::largest_of(*half), dtype_name(dtype)),
            "lora_path");
  return {};
}

}  // namespace valora
