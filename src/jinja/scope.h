// The variables of a block. Other names are looked up in the enclosing blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jinja/values/value.h"

namespace valora::jinja {

struct Scope {
  explicit Scope(std::shared_ptr<Scope> parent) : parent(std::move(parent)) {}

  const Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope; scope = scope->parent.get())
      for (const auto& [key, value] : scope->variables)
        if (key == name) return &value;
    return nullptr;
  }

  void set(const std::string& name, Value value) {
    for (auto& [key, old] : variables) {
      if (key != name) continue;
      old = std::move(value);
      return;
    }
    variables.emplace_back(name, std::move(value));
  }

  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Value>> variables;
};

}  // namespace valora::jinja
