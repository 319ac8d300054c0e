#include "models/decoder/decoder_config.h"

#include <algorithm>

namespace valora::models {
namespace {

// Bounds the module table, which is built before any tensor is checked.
constexpr int64_t kMostExperts = 1 << 17;  // of all layers

// transformers 5 writes another key than 4, and reads both.
int64_t read_experts(const ConfigReader& text, const MixtureDefaults& defaults, int64_t layers) {
  constexpr char kKey[] = "num_experts", kNewer[] = "num_local_experts";
  const int64_t most = kMostExperts / layers;
  if (!text.has(kNewer)) return text.at_most(kKey, most, defaults.experts);
  const int64_t experts = text.at_most(kNewer, most);
  if (text.has(kKey) && text.integer(kKey) != experts)
    text.refuse("\"num_experts\" and \"num_local_experts\" differ");
  return experts;
}

}  // namespace

void read_mixtures(const ConfigReader& text, const MixtureDefaults& defaults,
                   DecoderConfig& config) {
  const auto layers = static_cast<int64_t>(config.layers.size());
  MixtureConfig m;
  m.experts = read_experts(text, defaults, layers);
  m.chosen = text.integer("num_experts_per_tok", defaults.chosen);
  if (m.chosen > m.experts)
    text.refuse("\"num_experts_per_tok\" is " + std::to_string(m.chosen) + ", of " +
                std::to_string(m.experts) + " experts");
  m.width = text.integer("moe_intermediate_size", defaults.width);
  m.normed = defaults.always_normed || text.flag("norm_topk_prob", false);
  if (defaults.shared_width > 0)
    m.shared_width = text.integer("shared_expert_intermediate_size", defaults.shared_width);
  const int64_t step = defaults.every_layer ? 1 : text.integer("decoder_sparse_step", 1);
  const std::vector<int64_t> dense =
      defaults.every_layer ? std::vector<int64_t>() : text.integers("mlp_only_layers");
  for (int64_t i = 0; i < layers; ++i)
    if ((i + 1) % step == 0 && std::ranges::find(dense, i) == dense.end())
      config.layers[static_cast<size_t>(i)].mixture = m;
}

}  // namespace valora::models
