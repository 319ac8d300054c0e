#include "scheduler/fit_costs.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace valora::scheduler {
namespace {

constexpr size_t kFewest = 20;
constexpr size_t kHeldOut = 5;        // every fifth step
constexpr int kReweightings = 8;      // from least squares towards least absolute errors
constexpr double kSmallError = 0.02;  // relative; errors below it count as squares
constexpr int kMostSweeps = 20000;
constexpr double kConverged = 1e-10;

using Row = std::array<double, kStepCostFields>;

// Features over the step's time: the target of each row is 1.
Row relative(const MeasuredStep& step) {
  Row row = features_of(step.shape);
  for (double& value : row) value /= step.seconds;
  return row;
}

double product(const Row& row, const Row& x) {
  double sum = 0;
  for (size_t i = 0; i < kStepCostFields; ++i) sum += row[i] * x[i];
  return sum;
}

// Non-negative least squares by coordinate descent on the normal equations, which are small. The
// columns are scaled, since seconds per step and per attended key differ by six orders.
Row solve(const std::vector<Row>& rows, const std::vector<double>& weights) {
  Row scale{}, right{}, x{};
  for (size_t i = 0; i < kStepCostFields; ++i) {
    for (const Row& row : rows) scale[i] = std::max(scale[i], row[i]);
    if (scale[i] == 0) scale[i] = 1;
  }
  std::array<Row, kStepCostFields> left{};
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < kStepCostFields; ++i) {
      const double value = weights[r] * rows[r][i] / scale[i];
      right[i] += value;
      for (size_t j = 0; j < kStepCostFields; ++j) left[i][j] += value * rows[r][j] / scale[j];
    }
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double moved = 0, size = 0;
    for (size_t i = 0; i < kStepCostFields; ++i) {
      if (left[i][i] <= 0) continue;
      const double next = std::max(0.0, x[i] + (right[i] - product(left[i], x)) / left[i][i]);
      moved += std::abs(next - x[i]);
      size += next;
      x[i] = next;
    }
    if (moved <= kConverged * size) break;
  }
  for (size_t i = 0; i < kStepCostFields; ++i) x[i] /= scale[i];
  return x;
}

Row solve_robustly(const std::vector<Row>& rows) {
  std::vector<double> weights(rows.size(), 1);
  Row x = solve(rows, weights);
  for (int i = 0; i < kReweightings; ++i) {
    for (size_t r = 0; r < rows.size(); ++r)
      weights[r] = 1 / std::max(kSmallError, std::abs(product(rows[r], x) - 1));
    x = solve(rows, weights);
  }
  return x;
}

double at_share(std::vector<double> sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

Result<FittedCosts> fit_costs(std::span<const MeasuredStep> steps) {
  if (steps.size() < kFewest)
    return invalid("step costs need at least 20 measured steps, not " +
                   std::to_string(steps.size()));
  std::vector<Row> seen;
  std::vector<MeasuredStep> unseen;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!(steps[i].seconds > 0)) return invalid("a measured step took no time");
    if (i % kHeldOut != 0)
      seen.push_back(relative(steps[i]));
    else
      unseen.push_back(steps[i]);
  }
  const Row x = solve_robustly(seen);
  StepCosts costs;
  for (size_t i = 0; i < kStepCostFields; ++i) costs.*step_cost_fields()[i].value = x[i];
  FittedCosts fitted = with_errors(costs, unseen);
  fitted.steps = static_cast<int>(seen.size());
  return fitted;
}

FittedCosts with_errors(const StepCosts& costs, std::span<const MeasuredStep> steps) {
  std::vector<double> errors;
  for (const MeasuredStep& step : steps)
    errors.push_back(std::abs(costs.seconds(step.shape) / step.seconds - 1));
  std::ranges::sort(errors);
  return {.costs = costs,
          .error_median = at_share(errors, 0.5),
          .error_p95 = at_share(errors, 0.95),
          .steps = static_cast<int>(steps.size())};
}

}  // namespace valora::scheduler
