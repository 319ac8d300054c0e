// How JSON and numbers are printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json.h"

namespace valora::cli {

// One object with a line break behind it, as --json prints it; bytes that are no UTF-8 are
// replaced.
void print_json(const Json& json);

std::string human_bytes(size_t bytes);   // "14.3 MiB"
std::string human_count(int64_t count);  // "494.0M"

}  // namespace valora::cli
