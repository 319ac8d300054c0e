// Prints JSON and human-readable numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json.h"

namespace valora::cli {

// Prints one object and a line break to stdout. Bytes that are not UTF-8 become U+FFFD.
void print_json(const Json& json);

std::string human_bytes(size_t bytes);   // "14.3 MiB"
std::string human_count(int64_t count);  // "494.0M"

}  // namespace valora::cli
