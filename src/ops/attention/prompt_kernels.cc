#include "ops/attention/prompt_kernels.h"

#include <ATen/ATen.h>

#include <cstdlib>
#include <string_view>

namespace valora::ops {

bool prompts_by_flashinfer() {
  static const bool asked = [] {
    const char* const given = std::getenv("VALORA_GPU_PREFILL");
    const std::string_view name = given ? given : "own";
    TORCH_CHECK(name == "own" || name == "flashinfer", "VALORA_GPU_PREFILL: \"", given,
                "\" is not own or flashinfer");
    return name == "flashinfer";
  }();
  return asked;
}

}  // namespace valora::ops
