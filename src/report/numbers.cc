#include "report/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace valora::report {
namespace {

constexpr const char* kNothing = "–";

}  // namespace

std::string percent(std::optional<double> share) {
  return share && std::isfinite(*share) ? fmt::format("{:.1f}", 100 * *share) : kNothing;
}

std::string gain(double from, double to) {
  const double points = 100 * (to - from);
  if (!std::isfinite(points)) return kNothing;
  if (std::abs(points) < 0.05) return "0.0";
  return fmt::format("{}{:.1f}", points < 0 ? "−" : "+", std::abs(points));
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return kNothing;
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::min(seconds, 1e12) + 0.5);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string byte_size(size_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  int unit = -1;
  while (value >= 999.5) value /= 1000, ++unit;
  return fmt::format("{:.{}f} {}B", value, value < 9.95 ? 1 : 0, "kMGTPE"[unit]);
}

std::string decimal(double value) {
  return std::isfinite(value) ? fmt::format("{:.3g}", value) : kNothing;
}

std::string counted(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace valora::report
