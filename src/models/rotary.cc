#include "models/rotary.h"

#include <numeric>

namespace valora::models {

RotaryConfig read_rotary(const ConfigReader& text, int64_t head_dim, double default_theta) {
  const ConfigReader scaling = text.has("rope_parameters") ? text.child("rope_parameters")
                               : text.has("rope_scaling")  ? text.child("rope_scaling")
                                                           : ConfigReader(Json::object(), text.file());
  const std::string kind = scaling.text("rope_type", scaling.text("type", "default"));
  if (kind != "default" && kind != "mrope") text.refuse("rope type \"" + kind + "\" is not supported");
  RotaryConfig config;
  config.theta = scaling.number("rope_theta", text.number("rope_theta", default_theta));
  if (!(config.theta > 1)) text.refuse("\"rope_theta\" must be above 1");
  config.sections = scaling.integers("mrope_section");
  if (!config.sections.empty()) {
    bool valid = config.sections.size() == 3;
    for (const int64_t section : config.sections) valid = valid && section >= 0 && section <= head_dim;
    if (!valid || std::accumulate(config.sections.begin(), config.sections.end(), int64_t{0}) != head_dim / 2)
      text.refuse("\"mrope_section\" must be three numbers that sum to half the head size");
  }
  return config;
}

Rotary::Rotary(const RotaryConfig& config, int64_t dim, at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kFloat);
  inv_freq_ = (1.0 / at::pow(config.theta, at::arange(0, dim, 2, options) / double(dim))).to(device);
  if (config.sections.empty()) return;
  std::vector<int64_t> axis;
  for (size_t i = 0; i < config.sections.size(); ++i) axis.insert(axis.end(), config.sections[i], static_cast<int64_t>(i));
  axis_of_ = at::tensor(axis, at::kLong).to(device);
}

CosSin Rotary::operator()(const at::Tensor& positions) const {
  const at::Tensor at_frequency =  // [T, dim / 2] or [T, 1]
      axis_of_.defined() ? positions.index_select(0, axis_of_).t() : positions.select(0, 0).unsqueeze(1);
  const at::Tensor angle = (at_frequency.to(at::kFloat) * inv_freq_).contiguous();
  return {at::cos(angle), at::sin(angle)};
}

}  // namespace valora::models
