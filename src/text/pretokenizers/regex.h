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
  // pattern: from translate_regex() or literal_regex().
  static Result<Regex> compile(const std::string& pattern);

  // All non-overlapping matches from left to right, as found by Oniguruma's iterator. The text must
  // be valid UTF-8. If a match exceeds its limits (excessive backtracking), this is logged and the
  // search ends.
  std::vector<Span> find_all(std::string_view text) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace valora::text
