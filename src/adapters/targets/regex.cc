#include "adapters/targets/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text/strings.h"

namespace valora::adapters {
namespace {

// A limit of backtracking steps, and its cost to the budget if the previous limit was exceeded.
struct Attempt {
  uint32_t steps;
  int cost;
};
constexpr Attempt kAttempts[] = {{1'000, 0}, {10'000, 1}, {100'000, 10}};
constexpr uint32_t kMatchHeapKiB = 20'000;

using Code = std::shared_ptr<const pcre2_code>;
using CompileContext =
    std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)>;
using MatchContext = std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)>;
using MatchData = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

std::string error_text(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// Handles text that Python accepts and PCRE2 reads differently: "{,n}" (a repetition in Python,
// literal in PCRE2 before 10.43) is rewritten; POSIX classes (a PCRE2 extension) are refused.
Result<std::string> in_pcre2_syntax(std::string_view pattern, const std::string& source) {
  std::string text;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    text += c;
    if (c == '\\') {
      if (i + 1 < pattern.size()) text += pattern[++i];
    } else if (in_class) {
      const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
      if (c == '[' && (next == ':' || next == '.' || next == '='))
        return unprocessable(
            source + " uses a POSIX character class, which Python reads differently", source);
      if (c == ']') in_class = false;
    } else if (c == '[') {
      in_class = true;
      // A bracket at the start of a class is literal.
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') text += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') text += pattern[++i];
    } else if (c == '{' && i + 2 < pattern.size() && pattern[i + 1] == ',') {
      const size_t end = pattern.find_first_not_of("0123456789", i + 2);
      if (end != pattern.npos && pattern[end] == '}') text += '0';
    }
  }
  return text;
}

}  // namespace

Result<Regex> Regex::compile(std::string_view pattern, std::string source) {
  VALORA_TRY(text, in_pcre2_syntax(pattern, source));
  const CompileContext context(pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset,
                                   context.get());
  if (!code)
    return unprocessable(source + ": the regular expression \"" + shortened(pattern) +
                             "\" is refused: " + error_text(error) + " at position " +
                             std::to_string(offset),
                         source);
  return Regex(Code(code, [](const pcre2_code* c) { pcre2_code_free(const_cast<pcre2_code*>(c)); }),
               std::move(source));
}

Result<bool> Regex::full_match(std::string_view text, RegexBudget& budget) const {
  VALORA_TRY(groups, run(text, PCRE2_ANCHORED | PCRE2_ENDANCHORED, budget));
  return groups.has_value();
}

Result<std::optional<std::vector<std::string>>> Regex::match(std::string_view text,
                                                             RegexBudget& budget) const {
  return run(text, PCRE2_ANCHORED, budget);
}

Result<std::optional<std::vector<std::string>>> Regex::run(std::string_view text, uint32_t options,
                                                           RegexBudget& budget) const {
  const MatchData data(pcre2_match_data_create_from_pattern(code_.get(), nullptr),
                       pcre2_match_data_free);
  const MatchContext context(pcre2_match_context_create(nullptr), pcre2_match_context_free);
  pcre2_set_heap_limit(context.get(), kMatchHeapKiB);
  int matched = PCRE2_ERROR_MATCHLIMIT;
  for (const Attempt& attempt : kAttempts) {
    if (matched != PCRE2_ERROR_MATCHLIMIT || budget.long_matches < attempt.cost) break;
    budget.long_matches -= attempt.cost;
    pcre2_set_match_limit(context.get(), attempt.steps);
    matched = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                          options, data.get(), context.get());
  }
  if (matched == PCRE2_ERROR_NOMATCH) return std::optional<std::vector<std::string>>{};
  if (matched < 0)
    return unprocessable(source_ + ": matching its regular expression on \"" + shortened(text) +
                             "\" was stopped: " + error_text(matched),
                         source_);
  std::vector<std::string> groups;
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data.get());
  for (int i = 0; i < matched; ++i) {
    const PCRE2_SIZE begin = offsets[2 * i], end = offsets[2 * i + 1];
    groups.emplace_back(begin == PCRE2_UNSET || end < begin ? std::string_view{}
                                                            : text.substr(begin, end - begin));
  }
  return std::optional(std::move(groups));
}

}  // namespace valora::adapters
