#include "lab/ops/prepacked_linear.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace valora::bench {
namespace {

at::Tensor call(const c10::OperatorHandle& op, torch::jit::Stack stack) {
  op.callBoxed(stack);
  return stack.front().toTensor();
}

}  // namespace

bool has_prepacked_linear(at::ScalarType dtype) {
  auto& dispatcher = c10::Dispatcher::singleton();
  if (!dispatcher.findSchema({"mkldnn::_reorder_linear_weight", ""}) ||
      !dispatcher.findSchema({"mkldnn::_linear_pointwise", ""}))
    return false;
  try {
    (void)prepack_linear(at::zeros({16, 16}, dtype), 1);
    return true;
  } catch (const c10::Error&) {  // bf16 without AVX-512
    return false;
  }
}

at::Tensor prepack_linear(const at::Tensor& w, int64_t tokens) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_reorder_linear_weight", "");
  return call(op, {w, tokens});
}

at::Tensor prepacked_linear(const at::Tensor& x, const at::Tensor& packed) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "");
  return call(op, {x, packed, c10::IValue(), "none", c10::List<std::optional<at::Scalar>>(), ""});
}

}  // namespace valora::bench
