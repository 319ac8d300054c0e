// Texts and numbers as the fusion page shows them. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace valora::generator {

std::string escaped(
    std::string_view text);  // for HTML text and attributes in double quotes; bad UTF-8 as U+FFFD
std::string percent(std::optional<double> share);  // 0.7125: "71.2"; "–" for none or no number
std::string gain(double from, double to);          // in points: "+24.1"
std::string duration(double seconds);              // "8.2 s", "3 min 20 s", "1 h 05 min"
std::string byte_size(size_t bytes);               // "3.1 MB"
std::string decimal(double value);                 // three digits that count; "–" for no number
// "1 task", "2 tasks"
std::string counted(size_t count, std::string_view what);

}  // namespace valora::generator
