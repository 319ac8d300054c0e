#include "generator/data/page_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace valora::generator {
namespace {

constexpr const char* kNothing = "–";

// The JSON library's own repair: a text written as JSON with replacement, and read again.
std::string valid_utf8(std::string_view text) {
  return Json::parse(Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

// HTML has no way to write them.
bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += is_control(c) ? "\uFFFD" : std::string(1, c);
    }
  }
  return out;
}

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

}  // namespace valora::generator
