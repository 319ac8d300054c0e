#include "scheduler/costs/fit_costs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/quantile.h"
#include "scheduler/costs/live_costs.h"

namespace valora::scheduler {
namespace {

constexpr size_t kFewest = 20;
constexpr int kReweightings = 8;      // moving from least squares to least absolute errors
constexpr double kSmallError = 0.02;  // relative; smaller errors are squared
constexpr int kMostSweeps = 20000;
constexpr double kConverged = 1e-10;

// Holds out every fifth step.
bool held_out(size_t step) { return step % 5 == 0; }

FittedCosts with_quantiles(const StepCosts& costs, std::vector<double> errors) {
  std::ranges::sort(errors);
  return {.costs = costs,
          .error_median = quantile(errors, 0.5),
          .error_p95 = quantile(errors, 0.95),
          .steps = static_cast<int>(errors.size())};
}

using Row = std::array<double, kStepCostFields>;

// The candidate numbers of free tokens: processors become compute-bound within this range.
constexpr double kFreeTokens[] = {0, 2, 4, 8, 12, 16, 24, 32, 64, 128, 256};

bool reads_weights(const StepCostField& field) {
  return field.value == &StepCosts::step || field.value == &StepCosts::segment ||
         field.value == &StepCosts::rank;
}

// Features divided by the step's time, so the target of each row is 1.
Row relative(const MeasuredStep& step, double free_tokens) {
  Row row = features_of(step.shape, free_tokens);
  for (size_t i = 0; i < kStepCostFields; ++i)
    if (reads_weights(step_cost_fields()[i])) row[i] *= step.memory_time;
  for (double& value : row) value /= step.seconds;
  return row;
}

Row row_of(const StepCosts& costs) {
  Row row{};
  for (size_t i = 0; i < kStepCostFields; ++i) row[i] = costs.*step_cost_fields()[i].value;
  return row;
}

double product(const Row& row, const Row& x) {
  double sum = 0;
  for (size_t i = 0; i < kStepCostFields; ++i) sum += row[i] * x[i];
  return sum;
}

// Non-negative least squares by coordinate descent on the normal equations, which are small.
// Columns are scaled because seconds per step and per attended key differ by six orders of
// magnitude.
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

// The best fit with this number of free tokens, and its mean error.
std::pair<StepCosts, double> fit_with(std::span<const MeasuredStep> steps, double free_tokens) {
  std::vector<Row> rows;
  for (const MeasuredStep& step : steps) rows.push_back(relative(step, free_tokens));
  const Row x = solve_robustly(rows);
  StepCosts costs{.free_tokens = free_tokens};
  for (size_t i = 0; i < kStepCostFields; ++i) costs.*step_cost_fields()[i].value = x[i];
  double error = 0;
  for (const Row& row : rows) error += std::abs(product(row, x) - 1);
  return {costs, error / static_cast<double>(rows.size())};
}

}  // namespace

Result<FittedCosts> fit_costs(std::span<const MeasuredStep> steps) {
  if (steps.size() < kFewest)
    return invalid("step costs need at least 20 measured steps, not " +
                   std::to_string(steps.size()));
  std::vector<MeasuredStep> seen, unseen;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!(steps[i].seconds > 0)) return invalid("a measured step took no time");
    (held_out(i) ? unseen : seen).push_back(steps[i]);
  }
  auto best = fit_with(seen, kFreeTokens[0]);
  for (const double free_tokens : std::span(kFreeTokens).subspan(1))
    if (auto next = fit_with(seen, free_tokens); next.second < best.second) best = next;
  FittedCosts fitted = with_errors(best.first, unseen);
  fitted.steps = static_cast<int>(seen.size());
  return fitted;
}

FittedCosts with_errors(const StepCosts& costs, std::span<const MeasuredStep> steps) {
  const Row row = row_of(costs);
  std::vector<double> errors;
  for (const MeasuredStep& step : steps)
    errors.push_back(std::abs(product(relative(step, costs.free_tokens), row) - 1));
  return with_quantiles(costs, std::move(errors));
}

FittedCosts with_corrected_errors(const StepCosts& costs, std::span<const MeasuredStep> steps) {
  LiveCosts live(costs);
  std::vector<double> errors;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& [shape, taken, memory_time] = steps[i];
    if (held_out(i)) errors.push_back(std::abs(live.seconds(shape) / taken - 1));
    live.observe(shape, taken);
  }
  return with_quantiles(costs, std::move(errors));
}

}  // namespace valora::scheduler
