#include "cli/progress/format.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <span>

namespace valora::cli {
namespace {

std::string scaled(double value, double step, std::span<const char* const> units) {
  size_t unit = 0;
  for (; value >= step && unit + 1 < units.size(); ++unit) value /= step;
  return fmt::format("{:.{}f}{}", value, unit == 0 ? 0 : 1, units[unit]);
}

}  // namespace

void print_json(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

int fail(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return 1;
}

std::string human_bytes(size_t bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  return scaled(static_cast<double>(bytes), 1024, kUnits);
}

std::string human_count(int64_t count) {
  static constexpr const char* kUnits[] = {"", "K", "M", "B"};
  return scaled(static_cast<double>(count), 1000, kUnits);
}

}  // namespace valora::cli
