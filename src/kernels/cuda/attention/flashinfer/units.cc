#include "kernels/cuda/attention/flashinfer/units.h"

#include <cuda_runtime_api.h>

namespace valora::kernels::cuda {
namespace {

constexpr Dtype bf16 = Dtype::kBf16, fp16 = Dtype::kFp16;

struct Unit {
  int32_t dim;
  Dtype dtype;
  Status (*attend)(const PromptCall&);
};
#define VALORA_FLASHINFER_UNIT(type, dim) {dim, type, flashinfer_##type##_##dim},
constexpr Unit kUnits[] = {
#include "flashinfer_units.inc"
};
#undef VALORA_FLASHINFER_UNIT

const Unit* find(int32_t dim, Dtype dtype) {
  for (const Unit& unit : kUnits)
    if (unit.dim == dim && unit.dtype == dtype) return &unit;
  return nullptr;
}

}  // namespace

bool has_flashinfer(int32_t dim, Dtype dtype) { return find(dim, dtype) != nullptr; }

Status flashinfer_attention(const PromptCall& call) {
  const Unit* const unit = find(call.dim, call.dtype);
  return unit ? unit->attend(call) : Status{cudaErrorNotSupported};
}

}  // namespace valora::kernels::cuda
