// A compiled regular expression (PCRE2, UTF, JIT) with bounded matching.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/pretokenizers/pretokenizer.h"

namespace valora::text {

class Regex {
 public:
  // The pattern comes from translate_regex or literal_regex.
  static Result<Regex> compile(const std::string& pattern);

  // All matches from left to right without overlap, as Oniguruma's iterator finds them. The text
  // must be valid UTF-8. If matching reaches its limits (unbounded backtracking), it is logged and
  // ends.
  std::vector<Span> find_all(std::string_view text) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace valora::text
