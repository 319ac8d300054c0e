#include "models/decoder/rope_scaling.h"

#include <algorithm>
#include <cmath>

namespace valora::models {
namespace {

// As in transformers, the value outside the rope's object takes precedence.
double original_positions(const ConfigReader& scaling, const ConfigReader& text,
                          int64_t max_positions) {
  const char* const key = "original_max_position_embeddings";
  const double given = scaling.number(key, static_cast<double>(max_positions));
  return text.has(key) ? text.number(key, given) : given;
}

// "factor", or else the ratio by which the positions grew.
double stretch(const ConfigReader& scaling, int64_t max_positions, double original) {
  return scaling.number("factor", static_cast<double>(max_positions) / original);
}

double yarn_attention(const ConfigReader& scaling, double factor) {
  const auto scale = [&](double mscale) {
    return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1;
  };
  const double own = scaling.number("mscale", 0), all = scaling.number("mscale_all_dim", 0);
  return own != 0 && all != 0 ? scale(own) / scale(all) : scale(1);
}

double positive_factor(const ConfigReader& scaling, double fallback) {
  const double factor = scaling.number("attention_factor", fallback);
  if (!(factor > 0 && std::isfinite(factor)))
    scaling.refuse("the rope's \"attention_factor\" must be above 0");
  return factor;
}

std::vector<double> read_factors(const ConfigReader& scaling, const char* key, int64_t count) {
  std::vector<double> factors;
  const Json list = scaling.has(key) ? scaling.json().at(key) : Json();
  if (list.is_array())
    for (const Json& factor : list)
      if (factor.is_number() && factor.get<double>() > 0) factors.push_back(factor.get<double>());
  if (!list.is_array() || factors.size() != list.size() ||
      factors.size() != static_cast<size_t>(count))
    scaling.refuse("the longrope \"" + std::string(key) + "\" must be " + std::to_string(count) +
                   " numbers above 0, half the head size");
  return factors;
}

}  // namespace

Llama3Scaling read_llama3(const ConfigReader& scaling, const ConfigReader& text,
                          int64_t max_positions) {
  Llama3Scaling s;
  s.factor = scaling.number("factor", 0);
  s.low_factor = scaling.number("low_freq_factor", 0);
  s.high_factor = scaling.number("high_freq_factor", 0);
  s.original_positions = original_positions(scaling, text, max_positions);
  if (!(s.factor > 0 && s.low_factor > 0 && s.high_factor > s.low_factor &&
        s.original_positions > 0))
    text.refuse(
        "the llama3 rope needs factor, low_freq_factor below high_freq_factor and "
        "original_max_position_embeddings");
  return s;
}

YarnScaling read_yarn(const ConfigReader& scaling, const ConfigReader& text, int64_t max_positions,
                      double& attention_factor) {
  YarnScaling s;
  s.original_positions = original_positions(scaling, text, max_positions);
  s.factor =
      scaling.json().contains("factor") ? stretch(scaling, max_positions, s.original_positions) : 0;
  // As in transformers, 0 means the default.
  const auto beta = [&](const char* key, double fallback) {
    const double given = scaling.number(key, fallback);
    return given == 0 ? fallback : given;
  };
  s.beta_fast = beta("beta_fast", s.beta_fast);
  s.beta_slow = beta("beta_slow", s.beta_slow);
  s.truncate = scaling.flag("truncate", true);
  if (!(s.factor > 0 && s.original_positions > 0 && s.beta_slow > 0 && s.beta_fast >= s.beta_slow &&
        std::isfinite(s.factor * s.beta_fast)))
    text.refuse(
        "the yarn rope needs a factor above 0, original_max_position_embeddings, and beta_fast not "
        "below beta_slow");
  attention_factor = positive_factor(scaling, yarn_attention(scaling, s.factor));
  return s;
}

LongRopeScaling read_long_rope(const ConfigReader& scaling, const ConfigReader& text,
                               int64_t max_positions, int64_t head_dim) {
  LongRopeScaling s;
  const double original = original_positions(scaling, text, max_positions);
  if (!(original > 1 && original <= (1 << 30)))
    text.refuse("the longrope \"original_max_position_embeddings\" is out of range");
  s.original_positions = static_cast<int64_t>(original);
  s.short_factors = read_factors(scaling, "short_factor", head_dim / 2);
  s.long_factors = read_factors(scaling, "long_factor", head_dim / 2);
  const double factor = stretch(scaling, max_positions, original);
  const double usual = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
  s.attention_factor = positive_factor(scaling, usual);
  return s;
}

DynamicScaling read_dynamic(const ConfigReader& scaling, int64_t max_positions, int64_t head_dim) {
  const DynamicScaling s{scaling.number("factor", 0), max_positions};
  if (!(s.factor > 0 && std::isfinite(s.factor)))
    scaling.refuse("the dynamic rope needs a factor above 0");
  if (head_dim <= 2) scaling.refuse("the dynamic rope needs a head size above 2");
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

at::Tensor scaled(const at::Tensor& inv_freq, double theta, const YarnScaling& s) {
  const auto dim = static_cast<double>(2 * inv_freq.size(0));
  // The fractional index of the frequency that makes `turns` turns within the original positions.
  const auto index_of = [&](double turns) {
    return dim * std::log(s.original_positions / (turns * 2 * M_PI)) / (2 * std::log(theta));
  };
  double low = index_of(s.beta_fast), high = index_of(s.beta_slow);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  const at::Tensor ramp =
      ((at::arange(inv_freq.size(0), inv_freq.options()) - low) / (high - low)).clamp(0, 1);
  const at::Tensor kept = 1 - ramp;
  return inv_freq / s.factor * (1 - kept) + inv_freq * kept;
}

// In float, as in transformers.
at::Tensor scaled(const at::Tensor& lengths, double theta, int64_t dim, const DynamicScaling& s) {
  const auto positions = static_cast<double>(s.positions), size = static_cast<double>(dim);
  const at::Tensor growth =
      lengths.clamp_min(s.positions).to(at::kFloat) * s.factor / positions - (s.factor - 1);
  const at::Tensor base = growth.pow(size / (size - 2)) * theta;
  return 1.0 / base.unsqueeze(1).pow(at::arange(0, dim, 2, base.options()) / size);
}

// After n doublings, alpha is 2^(n + 1) - 1.
at::Tensor doubled(double theta, int64_t dim, const DoublingScaling& s) {
  const auto size = static_cast<double>(dim);
  std::vector<at::Tensor> rows;
  for (int64_t n = 0; n <= s.doublings; ++n) {
    const double alpha = std::exp2(static_cast<double>(n + 1)) - 1;
    const double base = theta * std::pow(alpha, size / (size - 2));
    rows.push_back(1.0 / at::pow(base, at::arange(0, dim, 2, at::kFloat) / size));
  }
  return at::stack(rows);
}

at::Tensor doublings_of(const at::Tensor& lengths, const DoublingScaling& s) {
  at::Tensor count = at::zeros_like(lengths);
  for (int64_t n = 0; n < s.doublings; ++n) count += lengths > (s.positions << n);
  return count;
}

at::Tensor divided(double theta, const std::vector<double>& factors) {
  const auto dim = static_cast<int64_t>(2 * factors.size());
  const at::Tensor powers =
      at::pow(theta, at::arange(0, dim, 2, at::kFloat) / static_cast<double>(dim));
  return 1.0 / (at::tensor(factors, at::kFloat) * powers);
}

}  // namespace valora::models
