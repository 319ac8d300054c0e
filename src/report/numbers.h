// Numbers as displayed on pages. Non-finite values become "–".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace valora::report {

std::string percent(std::optional<double> share);          // 0.7125: "71.2"; nullopt: "–"
std::string gain(double from, double to);                  // in percentage points: "+24.1"
std::string duration(double seconds);                      // "8.2 s", "3 min 20 s", "1 h 05 min"
std::string byte_size(size_t bytes);                       // "3.1 MB"
std::string decimal(double value);                         // three significant digits
std::string counted(size_t count, std::string_view what);  // "1 task", "2 tasks"

}  // namespace valora::report
