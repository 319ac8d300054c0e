#include "models/layers.h"

#include "ops/elementwise.h"

namespace valora::models {

Linear::Linear(Weights& weights, const std::string& name, int64_t in, int64_t out, bool bias, int module)
    : weight_(weights.linear(name + ".weight", out, in)), module_(module) {
  if (bias) bias_ = weights.get(name + ".bias", {out});
}

at::Tensor Linear::operator()(const at::Tensor& x, const std::vector<Segment>& segments) const {
  at::Tensor y = ops::linear(x, weight_, bias_);
  if (segments.empty() || module_ < 0) return y;
  std::vector<ops::LoraSegment> own;
  own.reserve(segments.size());
  for (const Segment& s : segments)
    if (const ops::LoraWeight* weight = s.adapter->modules[module_].get())
      own.push_back({s.token_begin, s.token_end, weight, s.coefficient * s.adapter->scales[module_]});
  ops::add_lora(y, x, own);
  return y;
}

RmsNorm::RmsNorm(Weights& weights, const std::string& name, int64_t width, double eps)
    : weight_(weights.get(name + ".weight", {width})), eps_(eps) {}

at::Tensor RmsNorm::operator()(const at::Tensor& x) const { return ops::rms_norm(x, weight_, eps_); }

at::Tensor RmsNorm::after_adding(at::Tensor& x, const at::Tensor& delta) const {
  return ops::add_rms_norm(x, delta, weight_, eps_);
}

LayerNorm::LayerNorm(Weights& weights, const std::string& name, int64_t width, double eps)
    : weight_(weights.get(name + ".weight", {width})), bias_(weights.get(name + ".bias", {width})), eps_(eps) {}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  return at::layer_norm(x, {x.size(-1)}, weight_, bias_, eps_);
}

}  // namespace valora::models
