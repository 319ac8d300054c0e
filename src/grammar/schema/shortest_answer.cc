#include "grammar/schema/shortest_answer.h"

#include <grammar_impl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "grammar/budget_poll.h"

namespace valora::grammar {
namespace {

using Rules = xgrammar::Grammar::Impl;
using Type = Rules::GrammarExprType;
using Expr = Rules::GrammarExpr;

// Passes over the rules until nothing changes; more are needed only by chains of references that
// go against the order of the rules again and again.
constexpr int kMostPasses = 200;
constexpr int32_t kLastCharacter = 0x10FFFF;

int64_t sum(int64_t a, int64_t b) { return a > kNoAnswer - b ? kNoAnswer : a + b; }

int64_t times(int64_t one, int64_t count) {
  if (count == 0) return 0;
  return one > kNoAnswer / count ? kNoAnswer : one * count;
}

int64_t utf8_bytes(int32_t character) {
  return character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
}

// Of the shortest character in the class; kNoAnswer if there is none.
int64_t bytes_of_class(const Expr& expr) {
  std::vector<std::pair<int32_t, int32_t>> ranges;
  for (int i = 1; i + 1 < expr.size(); i += 2)
    if (expr[i] <= expr[i + 1]) ranges.emplace_back(expr[i], expr[i + 1]);
  std::ranges::sort(ranges);
  if (expr[0] == 0) return ranges.empty() ? kNoAnswer : utf8_bytes(ranges.front().first);
  int32_t free = 0;  // the first character beyond the ranges
  for (const auto& [low, high] : ranges)
    if (low <= free) free = std::max(free, high + 1);
  return free > kLastCharacter ? kNoAnswer : utf8_bytes(free);
}

class Lengths {
 public:
  explicit Lengths(const Rules& rules) : rules_(rules), bytes_(rules.NumRules(), kNoAnswer) {}

  // False if the number of passes does not suffice.
  bool find() {
    for (int pass = 0; pass < kMostPasses; ++pass) {
      bool changed = false;
      for (int i = 0; i < rules_.NumRules(); ++i)
        changed |= improve(pass % 2 == 0 ? rules_.NumRules() - 1 - i : i);
      if (!changed) return true;
    }
    return false;
  }
  int64_t of_root() const { return bytes_[rules_.GetRootRuleId()]; }

 private:
  bool improve(int32_t rule) {
    const int64_t bytes = of(rules_.GetRule(rule).body_expr_id);
    return bytes < std::exchange(bytes_[rule], bytes);
  }

  int64_t of(int32_t id) const {
    poll_budget();
    const Expr expr = rules_.GetGrammarExpr(id);
    switch (expr.type) {
      case Type::kByteString: return expr.size();
      case Type::kCharacterClass: return bytes_of_class(expr);
      case Type::kRuleRef: return bytes_[expr[0]];
      case Type::kRepeat: return times(bytes_[expr[0]], expr[1]);
      case Type::kSequence: {
        int64_t total = 0;
        for (const int32_t part : expr) total = sum(total, of(part));
        return total;
      }
      case Type::kChoices: {
        int64_t least = kNoAnswer;
        for (const int32_t part : expr) least = std::min(least, of(part));
        return least;
      }
      default: return 0;  // a lower bound
    }
  }

  const Rules& rules_;
  std::vector<int64_t> bytes_;  // by rule
};

// Looks for empty character classes in what the root reaches.
class EmptyClasses {
 public:
  explicit EmptyClasses(const Rules& rules) : rules_(rules), seen_(rules.NumRules()) {}

  bool exist() {
    reach(rules_.GetRootRuleId());
    while (!open_.empty()) {
      const int32_t rule = open_.back();
      open_.pop_back();
      if (is_in(rules_.GetRule(rule).body_expr_id)) return true;
    }
    return false;
  }

 private:
  void reach(int32_t rule) {
    if (seen_[rule]) return;
    seen_[rule] = true;
    open_.push_back(rule);
  }

  bool is_in(int32_t id) {
    poll_budget();
    const Expr expr = rules_.GetGrammarExpr(id);
    if (expr.type == Type::kCharacterClass) return bytes_of_class(expr) == kNoAnswer;
    if (expr.type == Type::kRuleRef || expr.type == Type::kRepeat) reach(expr[0]);
    if (expr.type != Type::kSequence && expr.type != Type::kChoices) return false;
    return std::ranges::any_of(expr, [this](int32_t part) { return is_in(part); });
  }

  const Rules& rules_;
  std::vector<bool> seen_;
  std::vector<int32_t> open_;
};

}  // namespace

Result<int64_t> shortest_answer(const xgrammar::Grammar& grammar) {
  const Rules& rules = *grammar.ImplPtr();
  if (EmptyClasses(rules).exist())
    return invalid("has a character class that no character matches");
  Lengths lengths(rules);
  return lengths.find() ? lengths.of_root() : 0;
}

}  // namespace valora::grammar
