#include "grammar/schema/schema_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text/unicode.h"

namespace valora::grammar {
namespace {

// An open group.
struct Level {
  int64_t inside = 1;  // largest product of nested repetitions in the group so far
};

// The upper bound of a repetition "{…}" at text[at], or 0 if there is none.
int64_t repetition_at(std::string_view text, size_t at, size_t& end) {
  int64_t value = 0, highest = 0;
  bool digits = false;
  for (size_t i = at + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= '0' && c <= '9') {
      digits = true;
      value = std::min<int64_t>(value * 10 + (c - '0'), kMaxRepetition + 1);
      highest = std::max(highest, value);
    } else if (c == ',' || c == ' ') {
      value = 0;
    } else if (c == '}' && digits) {
      end = i;
      return std::max<int64_t>(highest, 1);
    } else {
      return 0;
    }
  }
  return 0;
}

// Tracks groups and repetitions. `quotes`: "…" are literals, as in EBNF.
class Scan {
 public:
  Scan(std::string_view text, const std::string& what, bool quotes)
      : text_(text), what_(what), quotes_(quotes) {}

  Status run() {
    levels_.push_back({});
    for (; at_ < text_.size(); ++at_) VALORA_CHECK(step());
    return {};
  }

 private:
  Error fault(const std::string& reason) const {
    return invalid(fmt::format("{} {} at byte {}", what_, reason, at_));
  }

  void skip_to(char end) {
    for (++at_; at_ < text_.size() && text_[at_] != end; ++at_)
      if (text_[at_] == '\\') ++at_;
    closed_ = 1;
  }

  Status open() {
    levels_.push_back({});
    closed_ = 1;
    if (levels_.size() > kMaxNesting + 1)
      return fault(fmt::format("nests groups deeper than {}", kMaxNesting));
    return {};
  }

  void close() {
    closed_ = levels_.back().inside;
    if (levels_.size() > 1) levels_.pop_back();
    levels_.back().inside = std::max(levels_.back().inside, closed_);
  }

  Status repeat(int64_t times) {
    closed_ *= times;
    if (closed_ > kMaxRepetition)
      return fault(fmt::format("repeats more than {} times", kMaxRepetition));
    levels_.back().inside = std::max(levels_.back().inside, closed_);
    return {};
  }

  Status step() {
    const char c = text_[at_];
    if (c == '\\') {
      ++at_;
      closed_ = 1;
    } else if (c == '[') {
      skip_to(']');
    } else if (quotes_ && c == '"') {
      skip_to('"');
    } else if (quotes_ && c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '(') {
      return open();
    } else if (c == ')') {
      close();
    } else if (c == '{') {
      size_t end = at_;
      const int64_t times = repetition_at(text_, at_, end);
      if (times == 0) return {};
      VALORA_CHECK(repeat(times));
      at_ = end;
    } else if (c != '?' && c != '*' && c != '+' && c != ' ') {
      closed_ = 1;
    }
    return {};
  }

  std::string_view text_;
  std::string what_;
  bool quotes_;
  size_t at_ = 0;
  int64_t closed_ = 1;  // product of the repetitions within the item that a following {…} repeats
  std::vector<Level> levels_;
};

Status check_text(std::string_view text, const std::string& what, size_t most) {
  if (text.empty()) return invalid(what + " is empty");
  if (text.size() > most)
    return invalid(fmt::format("{} has {} bytes; at most {} are allowed", what, text.size(), most));
  if (text.find('\0') != std::string_view::npos) return invalid(what + " has a null character");
  if (!is_valid_utf8(text)) return invalid(what + " is not UTF-8");
  return {};
}

// guidance writes its grammars so.
bool is_lark(std::string_view text) {
  const size_t first = text.find_first_not_of(" \n");
  return first != text.npos && text.substr(first).starts_with("%");
}

}  // namespace

Status check_regex(std::string_view pattern, const std::string& what) {
  VALORA_CHECK(check_text(pattern, what, kMaxRegexBytes));
  return Scan(pattern, what, false).run();
}

Status check_ebnf(std::string_view text) {
  VALORA_CHECK(check_text(text, "the grammar", kMaxEbnfBytes));
  if (is_lark(text))
    return invalid(
        "the grammar is written in Lark, which is not supported; write it in EBNF as llama.cpp "
        "has it, with a rule \"root ::= …\"");
  return Scan(text, "the grammar", true).run();
}

}  // namespace valora::grammar
