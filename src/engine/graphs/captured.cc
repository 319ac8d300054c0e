#include "engine/graphs/captured.h"

#include <cstdlib>
#include <string_view>

#include "base/log/log.h"

namespace valora {

Captured wanted_captures() {
  const char* const given = std::getenv("VALORA_GPU_CAPTURE");
  const std::string_view wanted = given ? given : "all";
  if (wanted == "none") return Captured::kNone;
  if (wanted == "decode") return Captured::kDecodes;
  if (wanted == "seen") return Captured::kSeen;
  if (wanted != "all")
    spdlog::warn("VALORA_GPU_CAPTURE is {}, not all, seen, decode or none; all is used", wanted);
  return Captured::kAll;
}

}  // namespace valora
