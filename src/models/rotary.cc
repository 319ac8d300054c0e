#include "models/rotary.h"

#include <cmath>
#include <numeric>

namespace valora::models {
namespace {

Llama3Scaling read_llama3(const ConfigReader& scaling, const ConfigReader& text) {
  Llama3Scaling s;
  s.factor = scaling.number("factor", 0);
  s.low_factor = scaling.number("low_freq_factor", 0);
  s.high_factor = scaling.number("high_freq_factor", 0);
  s.original_positions =
      scaling.number("original_max_position_embeddings", text.number("max_position_embeddings", 0));
  if (!(s.factor > 0 && s.low_factor > 0 && s.high_factor > s.low_factor &&
        s.original_positions > 0))
    text.refuse(
        "the llama3 rope needs factor, low_freq_factor below high_freq_factor and "
        "original_max_position_embeddings");
  return s;
}

at::Tensor scaled(const at::Tensor& inv_freq, const Llama3Scaling& s) {
  const at::Tensor wavelength = 2 * M_PI / inv_freq;
  const double longest = s.original_positions / s.low_factor,
               shortest = s.original_positions / s.high_factor;
  const at::Tensor smooth =
      (s.original_positions / wavelength - s.low_factor) / (s.high_factor - s.low_factor);
  const at::Tensor blended = (1 - smooth) * inv_freq / s.factor + smooth * inv_freq;
  return at::where(wavelength > longest, inv_freq / s.factor,
                   at::where(wavelength < shortest, inv_freq, blended));
}

}  // namespace

RotaryConfig read_rotary(const ConfigReader& text, int64_t head_dim, double default_theta) {
  const ConfigReader scaling = text.has("rope_parameters") ? text.child("rope_parameters")
                               : text.has("rope_scaling")
                                   ? text.child("rope_scaling")
                                   : ConfigReader(Json::object(), text.file());
  const std::string kind = scaling.text("rope_type", scaling.text("type", "default"));
  RotaryConfig config;
  if (kind == "linear")
    config.linear_factor = scaling.number("factor", 0);
  else if (kind == "llama3")
    config.llama3 = read_llama3(scaling, text);
  else if (kind != "default" && kind != "mrope")
    text.refuse("rope type \"" + kind + "\" is not supported");
  if (!(config.linear_factor > 0)) text.refuse("the rope \"factor\" must be above 0");
  config.theta = scaling.number("rope_theta", text.number("rope_theta", default_theta));
  if (!(config.theta > 1)) text.refuse("\"rope_theta\" must be above 1");
  config.sections = scaling.integers("mrope_section");
  if (!config.sections.empty()) {
    bool valid = config.sections.size() == 3;
    for (const int64_t section : config.sections)
      valid = valid && section >= 0 && section <= head_dim;
    if (!valid ||
        std::accumulate(config.sections.begin(), config.sections.end(), int64_t{0}) != head_dim / 2)
      text.refuse("\"mrope_section\" must be three numbers that sum to half the head size");
  }
  return config;
}

Rotary::Rotary(const RotaryConfig& config, int64_t dim, at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kFloat);
  at::Tensor inv_freq = 1.0 / at::pow(config.theta, at::arange(0, dim, 2, options) / double(dim)) /
                        config.linear_factor;
  if (config.llama3) inv_freq = scaled(inv_freq, *config.llama3);
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
  return {at::cos(angle), at::sin(angle)};
}

}  // namespace valora::models
