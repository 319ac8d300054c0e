// Finds a loaded adapter by name.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "api/engine.h"

namespace valora {

inline std::optional<AdapterCard> find_adapter(const Engine& engine, std::string_view name) {
  for (AdapterCard& card : engine.adapters())
    if (card.name == name) return std::move(card);
  return std::nullopt;
}

}  // namespace valora
