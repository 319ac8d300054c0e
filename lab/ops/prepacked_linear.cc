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

bool OnednnBytes::supported() {
  auto& dispatcher = c10::Dispatcher::singleton();
  return dispatcher.findSchema({"onednn::qlinear_prepack", ""}) &&
         dispatcher.findSchema({"onednn::qlinear_pointwise", ""});
}

OnednnBytes::OnednnBytes(const at::Tensor& w, int64_t tokens, double largest_input)
    : input_scale_(largest_input / 63) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("onednn::qlinear_prepack", "");
  scales_ = w.abs().amax(1) / 127;
  zeros_ = at::zeros_like(scales_, at::kInt);
  const at::Tensor integers = (w / scales_.unsqueeze(1)).round_().to(at::kChar);
  packed_ = call(op, {integers, std::vector<int64_t>{tokens, w.size(1)}});
}

at::Tensor OnednnBytes::product(const at::Tensor& x) const {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("onednn::qlinear_pointwise", "");
  constexpr int64_t kZero = 64;  // 7 bits, as libtorch rounds: with 8, sums saturate on AVX2
  const at::Tensor integers = x.mul(1 / input_scale_).add_(kZero).round_().to(at::kByte);
  return call(op, {integers, input_scale_, kZero, packed_, scales_, zeros_, c10::IValue(), 1.0,
                   int64_t{0}, at::kFloat, "none", c10::List<std::optional<at::Scalar>>(), ""});
}

}  // namespace valora::bench
