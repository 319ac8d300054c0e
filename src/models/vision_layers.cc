#include "models/vision_layers.h"

#include "models/table_linear.h"
#include "ops/attention.h"
#include "ops/elementwise.h"

namespace valora::models {

Linear patch_embedding(Weights& weights, const std::string& name, int64_t width,
                       const std::vector<int64_t>& kernel) {
  std::vector<int64_t> shape{width};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return Linear(ops::Weight(weights.get(name + ".weight", shape).reshape({width, -1}),
                            weights.dtype(), weights.device()));
}

Activation read_activation(const ConfigReader& config, const std::string& key,
                           const std::string& fallback) {
  const std::string name = config.text(key, fallback);
  if (name == "quick_gelu") return Activation::kQuickGelu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::kGeluTanh;
  if (name == "silu") return Activation::kSilu;
  config.refuse(key + " \"" + name + "\" is not supported");
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kQuickGelu: return ops::quick_gelu(x);
    case Activation::kGelu: return at::gelu(x);
    case Activation::kGeluTanh: return at::gelu(x, "tanh");
    case Activation::kSilu: return at::silu(x);
  }
  return {};
}

void check_rotary_heads(const ConfigReader& vision, int64_t width, int64_t heads) {
  if (width % heads != 0 || width / heads % 4 != 0)
    vision.refuse("the vision tower's head size must be a multiple of 4: " + std::to_string(width) +
                  " / " + std::to_string(heads));
}

at::Tensor fused_qkv_attention(const at::Tensor& qkv, int64_t heads, const CosSin& rotary,
                               const std::vector<int64_t>& ends) {
  const at::Tensor parts = qkv.view({-1, 3, heads, qkv.size(1) / (3 * heads)});
  at::Tensor q = parts.select(1, 0), k = parts.select(1, 1);  // views, rotated in place
  ops::rotate_half(q, rotary.cos, rotary.sin);
  ops::rotate_half(k, rotary.cos, rotary.sin);
  return ops::block_attention(q, k, parts.select(1, 2), ends);
}

PatchMerger::PatchMerger(Weights& weights, const adapters::ModuleTable& modules,
                         const std::string& name)
    : mlp0_(table_linear(weights, modules, name + ".mlp.0", true)),
      mlp2_(table_linear(weights, modules, name + ".mlp.2", true)) {}

at::Tensor PatchMerger::operator()(const at::Tensor& x, const Adaptation& adaptation) const {
  return mlp2_(at::gelu(mlp0_(x.reshape({-1, mlp0_.weight().in()}), adaptation)), adaptation);
}

void add_patch_merger_modules(const std::string& name, int64_t width, int64_t merge, int64_t out,
                              std::vector<adapters::Module>& modules) {
  const int64_t merged = width * merge * merge;
  modules.push_back({name + ".mlp.0", merged, merged, true, -1, true});
  modules.push_back({name + ".mlp.2", merged, out, true, -1, true});
}

}  // namespace valora::models
