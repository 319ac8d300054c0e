#include "grammar/mask_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace valora::grammar {
namespace {

// Share of the expected time that is kept after a cheaper choice, so that a grammar that is slow
// only now and then still counts as expensive.
constexpr double kRemembered = 0.9;

}  // namespace

void MaskAccount::charge(const StepMasks& step, double seconds) {
  const std::lock_guard lock(mutex_);
  const bool first = std::exchange(step_, step.number()) != step.number();
  left_ = std::min(limits_.most, left_ + (first ? limits_.token : limits_.further)) - seconds;
  expected_ = std::max(seconds, kRemembered * expected_);
}

Status MaskAccount::check() const {
  if (held_ > limits_.bytes)
    return invalid(fmt::format(
        "the grammar is too complex: following the answers of the request takes more than {} MiB; "
        "simplify it, or ask for fewer choices and prompts at a time",
        limits_.bytes >> 20));
  const std::lock_guard lock(mutex_);
  if (left_ >= 0) return {};
  return invalid(fmt::format(
      "the grammar is too complex: finding the allowed tokens takes more than {:.3g} seconds, and "
      "{:.3g} seconds per step and {:.3g} per further choice or prompt of the request; simplify "
      "it, or ask for fewer choices and prompts at a time",
      limits_.most, limits_.token, limits_.further));
}

}  // namespace valora::grammar
