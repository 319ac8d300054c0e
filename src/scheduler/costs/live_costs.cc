#include "scheduler/costs/live_costs.h"

#include <algorithm>
#include <cmath>

#include "base/quantile.h"

namespace valora::scheduler {
namespace {

// Weight of the newest step, and the largest deviation that counts. The factor follows a change of
// the machine within about 20 steps; a single slow step moves it by less than 5 %.
constexpr double kNewest = 0.15, kMostDeviation = 0.3;

void follow(double& log_factor, double ratio) {
  const double most = std::log(LiveCosts::kMostCorrection);
  const double wanted = std::clamp(std::log(ratio), -most, most);
  log_factor += kNewest * std::clamp(wanted - log_factor, -kMostDeviation, kMostDeviation);
}

}  // namespace

double LiveCosts::running_seconds(const StepShape& shape) const {
  return costs_.running_seconds(shape) * std::exp(log_running_);
}

double LiveCosts::weights_seconds(const StepShape& shape) const {
  return (costs_.seconds(shape) - costs_.running_seconds(shape)) * std::exp(log_weights_);
}

LiveCosts::Units LiveCosts::units() const {
  constexpr int kPrompt = 512;  // large, so that free tokens matter little
  const double step = running_seconds({});
  return {step, (running_seconds({.prefill_tokens = kPrompt}) - step) / kPrompt,
          running_seconds({.decode_tokens = 1}) - step};
}

void LiveCosts::observe(const StepShape& shape, double seconds) {
  if (!known() || seconds <= 0) return;
  const double predicted = this->seconds(shape);
  const double error = std::abs(predicted / seconds - 1);
  if (errors_.size() < kRemembered)
    errors_.push_back(error);
  else
    errors_[steps_ % kRemembered] = error;
  ++steps_;
  if (!shape.merges && !shape.restores)
    return follow(log_running_, seconds / costs_.seconds(shape));
  const double known = costs_.seconds(shape) - costs_.running_seconds(shape);
  const double taken = seconds - running_seconds(shape);
  if (known > 0 && taken > 0) follow(log_weights_, taken / known);
}

LiveCosts::Accuracy LiveCosts::accuracy() const {
  Accuracy accuracy{.steps = steps_, .correction = std::exp(log_running_)};
  if (errors_.empty()) return accuracy;
  std::vector<double> errors = errors_;
  std::ranges::sort(errors);
  accuracy.median = quantile(errors, 0.5);
  accuracy.p95 = quantile(errors, 0.95);
  return accuracy;
}

}  // namespace valora::scheduler
