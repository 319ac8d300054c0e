#include "cli/progress/format.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <iostream>

namespace valora::cli {

void print_json(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

int fail(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return 1;
}

std::string human_count(int64_t count) {
  constexpr std::array<const char*, 4> kUnits = {"", "K", "M", "B"};
  auto value = static_cast<double>(count);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return fmt::format("{:.{}f}{}", value, unit == 0 ? 0 : 1, kUnits[unit]);
}

}  // namespace valora::cli
