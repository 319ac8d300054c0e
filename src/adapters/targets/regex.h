// Regular expressions of adapter configurations, with the semantics of Python's re.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct pcre2_real_code_8;

namespace valora::adapters {

// Budget for matches with much backtracking, which honest configurations rarely need: this many
// matches of up to 10,000 steps per adapter, or a tenth as many of up to 100,000. A hostile adapter
// is refused within seconds.
struct RegexBudget {
  int long_matches = 5000;
};

class Regex {
 public:
  // source: the configuration key, for errors. Error: kUnprocessable if it does not compile.
  static Result<Regex> compile(std::string_view pattern, std::string source);

  // Python's re.fullmatch. Error: kUnprocessable if the budget is spent.
  Result<bool> full_match(std::string_view text, RegexBudget& budget) const;
  // Python's re.match (anchored at the start only). Returns the groups, the whole match first.
  Result<std::optional<std::vector<std::string>>> match(std::string_view text,
                                                        RegexBudget& budget) const;

 private:
  Regex(std::shared_ptr<const pcre2_real_code_8> code, std::string source)
      : code_(std::move(code)), source_(std::move(source)) {}
  Result<std::optional<std::vector<std::string>>> run(std::string_view text, uint32_t options,
                                                      RegexBudget& budget) const;

  std::shared_ptr<const pcre2_real_code_8> code_;
  std::string source_;
};

}  // namespace valora::adapters
