#include "kernels/cuda/attention/flashinfer/units.h"

#include <cuda_runtime_api.h>

namespace valora::kernels::cuda {
namespace {

constexpr Dtype bf16 = Dtype::kBf16, fp16 = Dtype::kFp16;

struct Unit {
  bool hopper;
  int32_t dim;
  Dtype dtype;
  Status (*attend)(const PromptCall&);
};
#define VALORA_FLASHINFER_UNIT(type, dim) {false, dim, type, flashinfer_##type##_##dim},
#define VALORA_FLASHINFER_HOPPER_UNIT(type, dim) \
  {true, dim, type, hopper_flashinfer_##type##_##dim},
constexpr Unit kUnits[] = {
#include "flashinfer_units.inc"
};

const Unit* find(bool hopper, int32_t dim, Dtype dtype) {
  for (const Unit& unit : kUnits)
    if (unit.hopper == hopper && unit.dim == dim && unit.dtype == dtype) return &unit;
  return nullptr;
}

}  // namespace

bool has_flashinfer(int32_t dim, Dtype dtype) { return find(false, dim, dtype) != nullptr; }
bool has_hopper_flashinfer(int32_t dim, Dtype dtype) { return find(true, dim, dtype) != nullptr; }

Status flashinfer_attention(const PromptCall& call) {
  const Unit* const unit = find(call.sizes.lists > 0, call.dim, call.dtype);
  return unit ? unit->attend(call) : Status{cudaErrorNotSupported};
}

}  // namespace valora::kernels::cuda
