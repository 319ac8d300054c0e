#include "engine/start/dtype.h"

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

kernels::KvFormat kv_format_of(const EngineOptions& options) {
  switch (options.kv_cache_dtype) {
    case KvCacheDtype::kInt8: return kernels::KvFormat::kInt8;
    case KvCacheDtype::kFp8: return kernels::KvFormat::kFp8;
    case KvCacheDtype::kAuto: break;
  }
  return kernels::KvFormat::kPlain;
}

std::string kv_dtype_name(const EngineOptions& options, at::ScalarType dtype) {
  return options.kv_cache_dtype == KvCacheDtype::kAuto ? dtype_name(dtype)
                                                       : name_of(options.kv_cache_dtype);
}

models::Rounding rounding_of(const EngineOptions& options) {
  models::Rounding rounding;
  switch (options.quantization) {
    case Quantization::kInt8: rounding.weights = ops::Quantisation{8, 128}; break;
    case Quantization::kInt4: rounding.weights = ops::Quantisation{4, 32}; break;
    case Quantization::kNone: break;
  }
  rounding.inputs = options.activations == Activations::kInt8;
  return rounding;
}

}  // namespace valora
