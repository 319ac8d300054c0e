#include "grammar/mask_budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::grammar {
namespace {

// Share of the expected time that is kept after a cheaper choice, so that a grammar that is slow
// only now and then still counts as expensive.
constexpr double kRemembered = 0.9;

}  // namespace

void MaskAccount::charge(double seconds) {
  double left = left_;
  while (!left_.compare_exchange_weak(left, std::min(limits_.most, left + limits_.token) - seconds))
    continue;
  expected_ = std::max(seconds, kRemembered * expected_);
}

Status MaskAccount::check() const {
  if (left_ >= 0) return {};
  return invalid(
      fmt::format("the grammar is too complex: its tokens take more than {:.3g} seconds each, and "
                  "{:.3g} seconds",
                  limits_.token, limits_.most));
}

}  // namespace valora::grammar
