#include "models/rotary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace valora::models {
namespace {

// The object that describes the rope. transformers takes rope_scaling if both are there, and
// rope_parameters may be listed by the type of layer.
ConfigReader find_scaling(const ConfigReader& text) {
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (text.has(key) && !text.json().at(key).empty())
      return text.child(key).nested_or_self("full_attention");
  return ConfigReader(Json::object(), text.file());
}

void check_partial(const ConfigReader& scaling, const ConfigReader& text) {
  for (const ConfigReader* config : {&scaling, &text})
    if (config->number("partial_rotary_factor", 1) != 1)
      text.refuse("a rope of a part of the head (partial_rotary_factor) is not supported");
}

// Serves no more than the positions for which the frequencies do not depend on a sequence's length.
void limit_positions(int64_t positions, const std::string& kind, const std::string& key,
                     const std::string& why, RotaryConfig& config) {
  config.max_positions = std::min(config.max_positions, positions);
  config.limit = "rope type \"" + kind + "\" is served up to " + key + " (" +
                 std::to_string(config.max_positions) + " tokens): " + why;
}

void read_type(const ConfigReader& scaling, const ConfigReader& text, int64_t head_dim,
               RotaryConfig& config) {
  const std::string kind = scaling.text("rope_type", scaling.text("type", "default"));
  const int64_t positions = config.max_positions;
  if (kind == "linear") {
    config.linear_factor = scaling.number("factor", 0);
  } else if (kind == "llama3") {
    config.llama3 = read_llama3(scaling, text, positions);
  } else if (kind == "yarn") {
    config.yarn = read_yarn(scaling, text, positions, config.attention_factor);
    // Published files leave max_position_embeddings as it was in training.
    const double stretched = config.yarn->original_positions * config.yarn->factor;
    if (scaling.has("original_max_position_embeddings") && stretched <= (1 << 30))
      config.max_positions = std::max(positions, static_cast<int64_t>(stretched));
  } else if (kind == "longrope") {
    const LongRopeScaling scale = read_long_rope(scaling, text, positions, head_dim);
    config.short_factors = scale.short_factors;
    config.attention_factor = scale.attention_factor;
    limit_positions(scale.original_positions, "longrope", "original_max_position_embeddings",
                    "prompts that are longer have other keys from their first token on", config);
  } else if (kind == "dynamic") {
    limit_positions(positions, "dynamic", "max_position_embeddings",
                    "beyond, transformers' answers depend on earlier requests", config);
  } else if (kind != "default" && kind != "mrope") {
    text.refuse("rope type \"" + kind + "\" is not supported");
  }
  if (!(config.linear_factor > 0)) text.refuse("the rope \"factor\" must be above 0");
}

void read_sections(const ConfigReader& scaling, const ConfigReader& text, int64_t head_dim,
                   RotaryConfig& config) {
  config.sections = scaling.integers("mrope_section");
  if (config.sections.empty()) return;
  bool valid = config.sections.size() == 3;
  for (const int64_t section : config.sections)
    valid = valid && section >= 0 && section <= head_dim;
  if (!valid ||
      std::accumulate(config.sections.begin(), config.sections.end(), int64_t{0}) != head_dim / 2)
    text.refuse("\"mrope_section\" must be three numbers that sum to half the head size");
}

}  // namespace

RotaryConfig read_rotary(const ConfigReader& text, int64_t head_dim, double default_theta,
                         int64_t max_positions) {
  const ConfigReader scaling = find_scaling(text);
  RotaryConfig config;
  config.max_positions = max_positions;
  check_partial(scaling, text);
  read_type(scaling, text, head_dim, config);
  config.theta = scaling.number("rope_theta", text.number("rope_theta", default_theta));
  if (!(config.theta > 1)) text.refuse("\"rope_theta\" must be above 1");
  read_sections(scaling, text, head_dim, config);
  return config;
}

Rotary::Rotary(const RotaryConfig& config, int64_t dim, at::Device device)
    : attention_factor_(config.attention_factor) {
  const auto options = at::TensorOptions().dtype(at::kFloat);
  at::Tensor inv_freq = 1.0 / at::pow(config.theta, at::arange(0, dim, 2, options) / double(dim)) /
                        config.linear_factor;
  if (config.llama3) inv_freq = scaled(inv_freq, *config.llama3);
  if (config.yarn) inv_freq = scaled(inv_freq, config.theta, *config.yarn);
  if (!config.short_factors.empty())
    inv_freq = inv_freq / at::tensor(config.short_factors, inv_freq.options());
  inv_freq_ = inv_freq.to(device);
  if (config.sections.empty()) return;
  std::vector<int64_t> axis;
  for (size_t i = 0; i < config.sections.size(); ++i)
    axis.insert(axis.end(), config.sections[i], static_cast<int64_t>(i));
  axis_of_ = at::tensor(axis, at::kLong).to(device);
}

CosSin Rotary::operator()(const at::Tensor& positions) const {
  const at::Tensor at_frequency =  // [T, dim / 2] or [T, 1]
      axis_of_.defined() ? positions.index_select(0, axis_of_).t()
                         : positions.select(0, 0).unsqueeze(1);
  const at::Tensor angle = (at_frequency.to(at::kFloat) * inv_freq_).contiguous();
  CosSin result{at::cos(angle), at::sin(angle)};
  if (attention_factor_ != 1) {
    result.cos.mul_(attention_factor_);
    result.sin.mul_(attention_factor_);
  }
  return result;
}

}  // namespace valora::models
