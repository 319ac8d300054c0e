// Finds a loaded adapter by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/engine.h"

namespace valora {

inline std::optional<AdapterCard> find_adapter(const Engine& engine, std::string_view name) {
  return engine.adapter(std::string(name));
}

}  // namespace valora
