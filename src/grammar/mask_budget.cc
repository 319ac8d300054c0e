#include "grammar/mask_budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::grammar {
namespace {

// How much of what a choice was expected to take is still expected after a cheaper one: a grammar
// that is slow now and then stays suspect.
constexpr double kRemembered = 0.9;

}  // namespace

void MaskAccount::charge(double seconds) {
  spent_ += seconds;
  expected_ = std::max(seconds, kRemembered * expected_);
}

Status MaskAccount::check(double limit) const {
  if (spent_ <= limit) return {};
  return invalid(fmt::format(
      "the grammar is too complex: the tokens so far took more than {:.3g} seconds", limit));
}

}  // namespace valora::grammar
