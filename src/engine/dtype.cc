#include "engine/dtype.h"

namespace valora {

std::optional<at::ScalarType> scalar_type(ComputeDtype dtype) {
  switch (dtype) {
    case ComputeDtype::kFloat32: return at::kFloat;
    case ComputeDtype::kBFloat16: return at::kBFloat16;
    case ComputeDtype::kFloat16: return at::kHalf;
    case ComputeDtype::kAuto: break;
  }
  return std::nullopt;
}

std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16: return "bfloat16";
    case at::kHalf: return "float16";
    case at::kDouble: return "float64";
    default: return "float32";
  }
}

models::Rounding rounding_of(const EngineOptions& options) {
  models::Rounding rounding;
  if (options.quantization == Quantization::kInt8) rounding.weights = models::Quantise::kInt8;
  if (options.quantization == Quantization::kInt4) rounding.weights = models::Quantise::kInt4;
  rounding.inputs = options.activations == Activations::kInt8;
  return rounding;
}

}  // namespace valora
