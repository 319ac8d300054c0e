// A model's tokens by id and by text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::text {

class Vocabulary {
 public:
  // Reads a JSON object {token: id}. Refuses ids that are out of range or repeated.
  static Result<Vocabulary> read(const Json& json, const std::string& where);

  // From tokens listed by id, whose texts must be unique.
  static Vocabulary of(std::vector<std::string> tokens);

  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  std::optional<int32_t> find(std::string_view token) const {
    const auto it = ids_.find(token);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }
  const std::string* token(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < tokens_.size() && present_[id] ? &tokens_[id]
                                                                               : nullptr;
  }
  int32_t size() const { return static_cast<int32_t>(ids_.size()); }
  int32_t max_id() const { return static_cast<int32_t>(tokens_.size()) - 1; }

 private:
  Vocabulary() = default;
  std::vector<std::string> tokens_;
  std::vector<bool> present_;
  std::unordered_map<std::string_view, int32_t> ids_;  // keys point into tokens_
};

}  // namespace valora::text
