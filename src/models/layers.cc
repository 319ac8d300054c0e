#include "models/layers.h"

#include "ops/elementwise.h"

namespace valora::models {

namespace {

const ops::Weight& in_use(const Linear& linear, const Adaptation& adaptation) {
  if (!adaptation.merged || linear.module() < 0) return linear.weight();
  const ops::Weight& merged = adaptation.merged->modules[linear.module()];
  return merged.defined() ? merged : linear.weight();
}

ops::Dropout dropout_of(const ops::Dropout& dropout, int module, size_t segment) {
  if (dropout.probability <= 0) return {};
  uint64_t seed = dropout.seed ^ (static_cast<uint64_t>(module) << 32 | segment);
  for (const int shift : {33, 29, 32}) seed = (seed ^ seed >> shift) * 0xff51afd7ed558ccdULL;
  return {dropout.probability, seed};
}

// The segments' parts on these linears; those that touch none are left out.
std::vector<ops::LoraSegment> segments_of(std::span<const Linear* const> linears,
                                          const Adaptation& adaptation) {
  std::vector<ops::LoraSegment> own;
  own.reserve(adaptation.segments.size());
  for (const Segment& s : adaptation.segments) {
    ops::LoraSegment segment{s.token_begin, s.token_end, {}};
    bool touches = false;
    for (size_t i = 0; i < linears.size(); ++i) {
      const int module = linears[i]->module();
      if (module < 0) continue;
      segment.parts[i] = {s.adapter->modules[module].get(),
                          s.coefficient * s.adapter->scales[module],
                          dropout_of(adaptation.dropout, module, own.size())};
      touches |= segment.parts[i].weight != nullptr;
    }
    if (touches) own.push_back(segment);
  }
  return own;
}

}  // namespace

Linear::Linear(Weights& weights, const std::string& name, int64_t in, int64_t out, bool bias,
               int module)
    : module_(module) {
  const at::Tensor w = weights.get(name + ".weight", {out, in}),
                   b = bias ? weights.get(name + ".bias", {out}) : at::Tensor();
  weight_ = weights.plain() ? ops::Weight::plain(w, b)
                            : ops::Weight(w, weights.dtype(), weights.device(), b);
}

at::Tensor Linear::operator()(const at::Tensor& x, const Adaptation& adaptation) const {
  return project(x, {this}, adaptation)[0];
}

std::vector<at::Tensor> project(const at::Tensor& x, std::initializer_list<const Linear*> linears,
                                const Adaptation& adaptation) {
  std::vector<const ops::Weight*> weights;
  for (const Linear* linear : linears) weights.push_back(&in_use(*linear, adaptation));
  return ops::project(x, weights, segments_of({linears.begin(), linears.size()}, adaptation));
}

at::Tensor gated(const at::Tensor& x, const Linear& gate, const Linear& up,
                 const Adaptation& adaptation) {
  const Linear* both[] = {&gate, &up};
  return ops::gated(x, in_use(gate, adaptation), in_use(up, adaptation),
                    segments_of(both, adaptation));
}

RmsNorm::RmsNorm(Weights& weights, const std::string& name, int64_t width, double eps)
    : weight_(weights.get(name + ".weight", {width})), eps_(eps) {}

at::Tensor RmsNorm::operator()(const at::Tensor& x) const {
  return ops::rms_norm(x, weight_, eps_);
}

at::Tensor RmsNorm::after_adding(at::Tensor& x, const at::Tensor& delta) const {
  return ops::add_rms_norm(x, delta, weight_, eps_);
}

LayerNorm::LayerNorm(Weights& weights, const std::string& name, int64_t width, double eps)
    : weight_(weights.get(name + ".weight", {width})),
      bias_(weights.get(name + ".bias", {width})),
      eps_(eps) {}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  return at::layer_norm(x, {x.size(-1)}, weight_, bias_, eps_);
}

}  // namespace valora::models
