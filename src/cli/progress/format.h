// Prints JSON, errors and human-readable counts.
#pragma once

#include <cstdint>
#include <string>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::cli {

// Prints one object and a line break to stdout. Bytes that are not UTF-8 become U+FFFD.
void print_json(const Json& json);

// Prints "error: …" to stderr and returns the exit status.
int fail(const Error& error);

std::string human_count(int64_t count);  // "494.0M"

}  // namespace valora::cli
