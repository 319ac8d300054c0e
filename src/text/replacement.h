// "Replace" of tokenizer.json, a normalizer and a decoder: replaces matches of a pattern by a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "text/pretokenizers/regex.h"

namespace valora::text {

// The object's "pattern": {"Regex": …} or {"String": …}.
Result<Regex> read_pattern(const Json& object, const std::string& where);

class Replacement {
 public:
  static Result<Replacement> read(const Json& json, const std::string& where);

  std::string apply(std::string_view utf8) const;
  // Also maps `head`, the length of a prefix of the text, to the length of its replacement. A
  // replacement belongs to the prefix if its match ends there.
  std::string apply(std::string_view utf8, size_t& head) const;
  size_t max_growth() const { return max_growth_; }

 private:
  Replacement(Regex pattern, std::string content, size_t max_growth)
      : pattern_(std::move(pattern)), content_(std::move(content)), max_growth_(max_growth) {}

  Regex pattern_;
  std::string content_;
  size_t max_growth_;  // the largest factor by which the text can grow
};

}  // namespace valora::text
