#include "cli/options/spellings.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

namespace valora::cli {

std::string expand_suffix(std::string& text) {
  constexpr double kLargest = 9e15;  // a double represents all smaller integers exactly
  constexpr std::string_view kDecimal = "kmgt", kBinary = "KMGT";
  const size_t decimal = text.empty() ? kDecimal.npos : kDecimal.find(text.back());
  const size_t binary = text.empty() ? kBinary.npos : kBinary.find(text.back());
  if (decimal == kDecimal.npos && binary == kBinary.npos) return {};
  const double unit = decimal == kDecimal.npos ? std::pow(1024.0, double(binary + 1))
                                               : std::pow(1000.0, double(decimal + 1));
  const std::string digits = text.substr(0, text.size() - 1);
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end) * unit;
  if (digits.empty() || *end != '\0' || number != std::floor(number) ||
      !(std::abs(number) < kLargest))
    return fmt::format("{} is not a whole number, such as 2048, 2k (2,000) or 2K (2,048)", text);
  text = fmt::format("{:.0f}", number);
  return {};
}

}  // namespace valora::cli
