// Numbers of bytes for people.
#pragma once

#include <cstdint>
#include <string>

namespace valora {

std::string human_bytes(uint64_t bytes);  // "14.3 MiB"

}  // namespace valora
