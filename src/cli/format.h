// How numbers are written for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace valora::cli {

std::string human_bytes(size_t bytes);   // "14.3 MiB"
std::string human_count(int64_t count);  // "494.0M"

}  // namespace valora::cli
