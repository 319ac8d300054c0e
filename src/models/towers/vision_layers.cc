#include "models/towers/vision_layers.h"

#include <utility>

#include "models/decoder/layers.h"
#include "ops/elementwise/elementwise.h"

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
  // Written by transformers since 5.23.
  if (!vision.has("rope_parameters")) return;
  const ConfigReader rope = vision.child("rope_parameters");
  const std::string type = rope.text("rope_type", "axial");
  if ((type != "axial" && type != "default") || rope.number("rope_theta", 10000) != 10000)
    vision.refuse(
        "the vision tower's rope (rope_parameters) is supported with rope_theta 10000 "
        "and without scaling only");
}

TowerAttention::TowerAttention(const std::vector<int64_t>& ends, int64_t heads, int64_t width,
                               at::ScalarType dtype, at::Device device)
    : attention_(ends, heads, width / heads, dtype, device),
      queries_(at::empty({ends.back(), heads, width / heads},
                         at::TensorOptions().dtype(dtype).device(device))) {
  double pairs = 0;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    const auto length = static_cast<double>(end - std::exchange(begin, end));
    pairs += length * length;
  }
  products_ = 2 * pairs * static_cast<double>(width) / static_cast<double>(ends.back());
}

void TowerAttention::keep(int64_t begin, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v) {
  if (begin == 0) {
    attention_.clear();
    queries_ = c10::GradMode::is_enabled() ? at::empty_like(queries_) : queries_;
  }
  attention_.store(k, v);
  queries_.narrow(0, begin, q.size(0)).copy_(q);
}

void TowerAttention::store_rotated(int64_t begin, const at::Tensor& qkv, const CosSin& rotary) {
  const int64_t rows = qkv.size(0);
  const at::Tensor parts = qkv.view({rows, 3, queries_.size(1), queries_.size(2)}),
                   cos = rotary.cos.narrow(0, begin, rows), sin = rotary.sin.narrow(0, begin, rows);
  at::Tensor q = parts.select(1, 0), k = parts.select(1, 1);  // views, rotated in place
  ops::rotate_half(q, cos, sin);
  ops::rotate_half(k, cos, sin);
  keep(begin, q, k, parts.select(1, 2));
}

at::Tensor gated_by(const at::Tensor& x, const Linear& gate, const Linear& up,
                    Activation activation, const Adaptation& adaptation) {
  if (activation == Activation::kSilu) return gated(x, gate, up, adaptation);
  const auto both = project(x, {&gate, &up}, adaptation);
  return activate(both[0], activation) * both[1];
}

double products_of(std::initializer_list<const Linear*> linears) {
  double sum = 0;
  for (const Linear* linear : linears)
    sum += static_cast<double>(linear->weight().in()) * static_cast<double>(linear->weight().out());
  return sum;
}

PatchMerger::PatchMerger(Weights& weights, const adapters::ModuleTable& modules,
                         const std::string& name)
    : mlp0_(table_linear(weights, modules, name + ".mlp.0", true)),
      mlp2_(table_linear(weights, modules, name + ".mlp.2", true)) {}

at::Tensor PatchMerger::operator()(const at::Tensor& x, const Adaptation& adaptation) const {
  return mlp2_(at::gelu(mlp0_(x.reshape({-1, mlp0_.weight().in()}), adaptation)), adaptation);
}

double PatchMerger::products() const { return products_of({&mlp0_, &mlp2_}); }

void add_patch_merger_modules(const std::string& name, int64_t width, int64_t merge, int64_t out,
                              std::vector<adapters::Module>& modules) {
  const int64_t merged = width * merge * merge;
  modules.push_back({name + ".mlp.0", merged, merged, -1, true});
  modules.push_back({name + ".mlp.2", merged, out, -1, true});
}

}  // namespace valora::models
