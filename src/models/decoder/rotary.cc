#include "models/decoder/rotary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace valora::models {
namespace {

// The object that describes the rope. As in transformers, rope_scaling wins over rope_parameters;
// the latter may be nested by layer type.
ConfigReader find_scaling(const ConfigReader& text) {
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (text.has(key) && !text.json().at(key).empty())
      return text.child(key).nested_or_self("full_attention");
  return ConfigReader(Json::object(), text.file());
}

void check_partial(const ConfigReader& scaling, const ConfigReader& text) {
  for (const ConfigReader* config : {&scaling, &text})
    if (config->number("partial_rotary_factor", 1) != 1)
      text.refuse("rope on only a part of the head (partial_rotary_factor) is not supported");
}

// The number of rotated elements of a head.
int64_t read_part(const ConfigReader& scaling, const ConfigReader& text, int64_t head_dim,
                  double share) {
  const char* const key = "partial_rotary_factor";
  const double part = scaling.number(key, text.number(key, share));
  const auto dim = part > 0 && part <= 1 ? static_cast<int64_t>(head_dim * part) : 0;
  if (dim < 2 || dim % 2 != 0)
    text.refuse("\"partial_rotary_factor\" must leave an even number of a head's " +
                std::to_string(head_dim) + " elements");
  return dim;
}

// The number of positions served by a rope that reaches `reach`.
int64_t stretched(int64_t positions, double reach) {
  return reach <= (1 << 30) ? std::max(positions, static_cast<int64_t>(reach)) : positions;
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
    // Published files keep the training length in max_position_embeddings.
    if (scaling.has("original_max_position_embeddings"))
      config.max_positions =
          stretched(positions, config.yarn->original_positions * config.yarn->factor);
  } else if (kind == "longrope") {
    config.long_rope = read_long_rope(scaling, text, positions, head_dim);
    config.attention_factor = config.long_rope->attention_factor;
    config.change = {config.long_rope->original_positions, false};
  } else if (kind == "dynamic") {
    config.dynamic = read_dynamic(scaling, positions, head_dim);
    config.change = {positions, true};
    config.max_positions =
        stretched(positions, static_cast<double>(positions) * config.dynamic->factor);
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

// The axis that each frequency follows.
std::vector<int64_t> axes_of(const RotaryConfig& config) {
  std::vector<int64_t> axis;
  for (size_t i = 0; i < config.sections.size(); ++i)
    axis.insert(axis.end(), config.sections[i], static_cast<int64_t>(i));
  if (!config.interleaved) return axis;
  for (size_t i = 0; i < axis.size(); ++i) {
    const size_t turn = i % 3;
    const bool lasts = turn > 0 && static_cast<int64_t>(i) < 3 * config.sections[turn];
    axis[i] = lasts ? static_cast<int64_t>(turn) : 0;
  }
  return axis;
}

}  // namespace

RotaryConfig read_rotary(const ConfigReader& text, int64_t head_dim, double default_theta,
                         int64_t max_positions, double share) {
  const ConfigReader scaling = find_scaling(text);
  RotaryConfig config;
  config.max_positions = max_positions;
  if (share > 0)
    head_dim = config.dim = read_part(scaling, text, head_dim, share);
  else
    check_partial(scaling, text);
  read_type(scaling, text, head_dim, config);
  config.theta = scaling.number("rope_theta", text.number("rope_theta", default_theta));
  if (!(config.theta > 1)) text.refuse("\"rope_theta\" must be above 1");
  read_sections(scaling, text, head_dim, config);
  return config;
}

Rotary::Rotary(const RotaryConfig& config, int64_t dim, at::Device device)
    : theta_(config.theta),
      dim_(dim),
      dynamic_(config.dynamic),
      doubling_(config.doubling),
      log_beyond_(config.log_beyond),
      change_(config.change),
      attention_factor_(config.attention_factor) {
  const auto options = at::TensorOptions().dtype(at::kFloat);
  at::Tensor inv_freq = 1.0 / at::pow(config.theta, at::arange(0, dim, 2, options) / double(dim)) /
                        config.linear_factor;
  if (config.llama3) inv_freq = scaled(inv_freq, *config.llama3);
  if (config.yarn) inv_freq = scaled(inv_freq, config.theta, *config.yarn);
  if (config.long_rope) {
    inv_freq = divided(config.theta, config.long_rope->short_factors);
    long_inv_freq_ = divided(config.theta, config.long_rope->long_factors).to(device);
  }
  inv_freq_ = inv_freq.to(device);
  if (config.doubling) doubled_ = doubled(config.theta, dim, *config.doubling).to(device);
  if (config.sections.empty()) return;
  axis_of_ = at::tensor(axes_of(config), at::kLong).to(device);
}

// Float [T, dim / 2]. Tokens of sequences up to change_.beyond get the unscaled frequencies.
at::Tensor Rotary::frequencies(const at::Tensor& lengths) const {
  if (doubling_) return doubled_.index_select(0, doublings_of(lengths, *doubling_));
  const at::Tensor changed = dynamic_ ? scaled(lengths, theta_, dim_, *dynamic_) : long_inv_freq_;
  return at::where((lengths > change_.beyond).unsqueeze(1), changed, inv_freq_);
}

CosSin Rotary::operator()(const at::Tensor& positions, const at::Tensor& lengths) const {
  const at::Tensor at_frequency =  // [T, dim / 2] or [T, 1]
      axis_of_.defined() ? positions.index_select(0, axis_of_).t()
                         : positions.select(0, 0).unsqueeze(1);
  const at::Tensor inv_freq = lengths.defined() ? frequencies(lengths) : inv_freq_;
  const at::Tensor angle = (at_frequency.to(at::kFloat) * inv_freq).contiguous();
  CosSin result{at::cos(angle), at::sin(angle)};
  if (attention_factor_ != 1) {
    result.cos.mul_(attention_factor_);
    result.sin.mul_(attention_factor_);
  }
  return result;
}

CosSin Rotary::of_queries(const CosSin& keys, const at::Tensor& positions) const {
  if (log_beyond_ == 0) return keys;
  const at::Tensor number = positions.select(0, 0) + 1;
  const at::Tensor beyond = number > log_beyond_;
  if (beyond.is_cpu() && !beyond.any().item<bool>()) return keys;  // item() would block on a GPU
  const at::Tensor logs = number.to(at::kDouble).log() / std::log(static_cast<double>(log_beyond_));
  const at::Tensor scale = at::where(beyond, logs, 1.0).to(at::kFloat).unsqueeze(1);
  return {keys.cos * scale, keys.sin * scale};
}

}  // namespace valora::models
