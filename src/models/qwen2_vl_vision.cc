#include "models/qwen2_vl_vision.h"

#include "ops/attention.h"
#include "ops/elementwise.h"

namespace valora::models {
namespace {

constexpr double kLayerNormEps = 1e-6;
// No tower comes near; products of these do not overflow.
constexpr int64_t kMaxWidth = 1 << 20, kMaxSide = 1 << 10;

// A convolution whose kernel equals its stride is a product over flattened patches.
Linear patch_embedding(Weights& weights, const std::string& name, const Qwen2VlVisionConfig& c) {
  return Linear(ops::Weight(weights.get(name + ".weight", {c.width, c.channels, c.temporal_patch, c.patch, c.patch})
                                .reshape({c.width, c.patch_dim()}),
                            weights.dtype(), weights.device()));
}

}  // namespace

Qwen2VlVisionConfig read_qwen2_vl_vision_config(const ConfigReader& vision) {
  Qwen2VlVisionConfig c;
  c.depth = vision.at_most("depth", kMaxLayers, 32);
  c.width = vision.at_most("embed_dim", kMaxWidth, 1280);
  c.heads = vision.integer("num_heads", 16);
  c.out = vision.integer("hidden_size", 3584);
  c.channels = vision.at_most("in_channels", kMaxSide, vision.integer("in_chans", 3));
  c.patch = vision.at_most("patch_size", kMaxSide, 14);
  c.temporal_patch = vision.at_most("temporal_patch_size", kMaxSide, 2);
  c.merge = vision.at_most("spatial_merge_size", kMaxSide, 2);
  const double ratio = vision.number("mlp_ratio", 4);
  if (!(ratio * static_cast<double>(c.width) >= 1 && ratio <= kMaxSide)) vision.refuse("\"mlp_ratio\" is out of range");
  c.mlp = static_cast<int64_t>(static_cast<double>(c.width) * ratio);
  c.activation = vision.text("hidden_act", "quick_gelu");
  if (c.activation != "quick_gelu" && c.activation != "gelu" && c.activation != "silu")
    vision.refuse("vision hidden_act \"" + c.activation + "\" is not supported");
  if (c.width % c.heads != 0 || c.width / c.heads % 4 != 0)
    vision.refuse("the vision head size must be a multiple of 4 (embed_dim / num_heads)");
  return c;
}

void add_qwen2_vl_vision_modules(const Qwen2VlVisionConfig& c, const std::string& prefix,
                                 std::vector<adapters::Module>& modules) {
  modules.push_back({prefix + "patch_embed.proj", c.patch_dim(), c.width, false, -1});
  for (int64_t i = 0; i < c.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    modules.push_back({block + "attn.qkv", c.width, 3 * c.width, false, i});
    modules.push_back({block + "attn.proj", c.width, c.width, false, i});
    modules.push_back({block + "mlp.fc1", c.width, c.mlp, false, i});
    modules.push_back({block + "mlp.fc2", c.mlp, c.width, false, i});
  }
  const int64_t merged = c.width * c.merge * c.merge;
  modules.push_back({prefix + "merger.mlp.0", merged, merged, false, -1});
  modules.push_back({prefix + "merger.mlp.2", merged, c.out, false, -1});
}

Qwen2VlVisionTower::Qwen2VlVisionTower(Weights& weights, const std::string& prefix, const Qwen2VlVisionConfig& c,
                                       at::Device device)
    : config_(c),
      device_(device),
      dtype_(weights.dtype()),
      patch_embed_(patch_embedding(weights, prefix + "patch_embed.proj", c)),
      ln_q_(weights, prefix + "merger.ln_q", c.width, kLayerNormEps),
      mlp0_(weights, prefix + "merger.mlp.0", c.width * c.merge * c.merge, c.width * c.merge * c.merge, true),
      mlp2_(weights, prefix + "merger.mlp.2", c.width * c.merge * c.merge, c.out, true) {
  for (int64_t i = 0; i < c.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    blocks_.push_back({LayerNorm(weights, block + "norm1", c.width, kLayerNormEps),
                       LayerNorm(weights, block + "norm2", c.width, kLayerNormEps),
                       Linear(weights, block + "attn.qkv", c.width, 3 * c.width, true),
                       Linear(weights, block + "attn.proj", c.width, c.width, true),
                       Linear(weights, block + "mlp.fc1", c.width, c.mlp, true),
                       Linear(weights, block + "mlp.fc2", c.mlp, c.width, true)});
  }
}

// Half of the frequencies turn with a patch's row, half with its column; patches come merge block by
// merge block (media/processor.h).
CosSin Qwen2VlVisionTower::rotary(const media::VisualInput& input) const {
  const int64_t quarter = config_.width / config_.heads / 4, h = input.grid_h, w = input.grid_w, m = config_.merge;
  const auto blockwise = [&](const at::Tensor& index) {  // [h, w] → [h * w] in patch order
    return index.reshape({h / m, m, w / m, m}).permute({0, 2, 1, 3}).reshape({h * w, 1});
  };
  const at::Tensor row = blockwise(at::arange(h, at::kFloat).unsqueeze(1).expand({h, w}));
  const at::Tensor column = blockwise(at::arange(w, at::kFloat).unsqueeze(0).expand({h, w}));
  const at::Tensor frequency = 1.0 / at::pow(10000.0, at::arange(0, quarter, at::kFloat) / double(quarter));
  const at::Tensor angle = at::cat({row * frequency, column * frequency}, 1).repeat({input.grid_t, 1}).to(device_);
  return {at::cos(angle), at::sin(angle)};
}

at::Tensor Qwen2VlVisionTower::activate(const at::Tensor& x) const {
  if (config_.activation == "quick_gelu") return x * at::sigmoid(1.702 * x);
  return config_.activation == "gelu" ? at::gelu(x) : at::silu(x);
}

at::Tensor Qwen2VlVisionTower::attend(const Qwen2VlVisionBlock& block, const at::Tensor& x, const CosSin& rotary,
                                      const std::vector<int64_t>& frames) const {
  const at::Tensor qkv = block.qkv(x).view({-1, 3, config_.heads, config_.width / config_.heads});
  at::Tensor q = qkv.select(1, 0).contiguous(), k = qkv.select(1, 1).contiguous();
  ops::rotate_half(q, rotary.cos, rotary.sin);
  ops::rotate_half(k, rotary.cos, rotary.sin);
  return block.proj(ops::block_attention(q, k, qkv.select(1, 2), frames));
}

at::Tensor Qwen2VlVisionTower::operator()(const media::VisualInput& input) const {
  const int64_t patches = int64_t{input.grid_t} * input.grid_h * input.grid_w;
  TORCH_CHECK(input.patch_dim == config_.patch_dim(), "the image processor makes patches of ", input.patch_dim,
              " values, the vision tower takes ", config_.patch_dim());
  const at::Tensor pixels = at::from_blob(const_cast<float*>(input.patches.data()), {patches, input.patch_dim}, at::kFloat)
                                .to(at::TensorOptions().dtype(dtype_).device(device_));
  const CosSin angles = rotary(input);
  std::vector<int64_t> frames;  // each temporal step attends within itself
  for (int64_t t = 1; t <= input.grid_t; ++t) frames.push_back(t * input.grid_h * input.grid_w);

  at::Tensor x = patch_embed_(pixels);
  for (const Qwen2VlVisionBlock& block : blocks_) {
    x = x + attend(block, block.norm1(x), angles, frames);
    x = x + block.fc2(activate(block.fc1(block.norm2(x))));
  }
  const int64_t merged = config_.merge * config_.merge;
  return mlp2_(at::gelu(mlp0_(ln_q_(x).view({patches / merged, config_.width * merged}))));
}

}  // namespace valora::models
