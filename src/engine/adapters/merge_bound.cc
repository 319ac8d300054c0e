#include "engine/adapters/merge_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "adapters/tensors/tensor_values.h"
#include "models/decoder/layers.h"

namespace valora {
namespace {

// Limit of the root mean square of D: several hundred times what training produces. Beyond it, the
// adapter's own merged weights may overflow.
constexpr double kLargestChange = 16;
// The share of a row or column of W that requests of others may lose. The order of a sum of 4,096
// products changes its result by about as much in fp32.
const double kMostLost = std::exp2(-17);

// An upper bound of the root mean square of D.
double largest_change(const adapters::LoraTarget& target) {
  return std::abs(target.scale) * adapters::norm_of(target.a) * adapters::norm_of(target.b) /
         std::sqrt(static_cast<double>(target.a.shape[1]) * static_cast<double>(target.b.shape[0]));
}

double unit_roundoff(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBFloat16: return std::exp2(-8);
    case at::kHalf: return std::exp2(-11);
    default: return std::exp2(-24);
  }
}

std::vector<double> squares_along(const at::Tensor& values, int64_t dim) {
  const at::Tensor sums = values.to(at::kDouble).square().sum(dim).contiguous().cpu();
  return {sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel()};
}

// Sums of squares of the rows of a matrix [rows, columns], or of its columns.
std::vector<double> squares(const TensorView& matrix, bool of_rows) {
  const std::vector<float> values = adapters::floats_of(matrix);
  const auto columns = static_cast<size_t>(matrix.shape[1]);
  std::vector<double> sums(static_cast<size_t>(matrix.shape[of_rows ? 0 : 1]));
  for (size_t i = 0; i < values.size(); ++i)
    sums[of_rows ? i / columns : i % columns] += double{values[i]} * values[i];
  return sums;
}

std::vector<double> cut(const std::vector<double>& values, const adapters::Share& share) {
  return {values.begin() + share.begin, values.begin() + share.end};
}

std::vector<double> cut(const std::vector<double>& values, const adapters::Shares& shares) {
  std::vector<double> kept;
  for (size_t i = 0; i < shares.count; ++i) {
    const std::vector<double> section = cut(values, shares.of[i]);
    kept.insert(kept.end(), section.begin(), section.end());
  }
  return kept;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// True if factor · d[i] <= w[i] for all i. False for NaN.
bool all_within(double factor, const std::vector<double>& d, const std::vector<double>& w) {
  return std::ranges::equal(
      d, w, [&](double change, double weight) { return change == 0 || factor * change <= weight; });
}

bool on_merged_linear(const adapters::LoraTarget& target, const adapters::ModuleTable& modules) {
  const adapters::Module& module = modules.modules()[target.module];
  return !module.visual && module.kind == adapters::ModuleKind::kLinear;
}

}  // namespace

MergeBound::MergeBound(std::span<models::Model* const> ranks, at::ScalarType dtype)
    : most_(std::max(0.0, kMostLost / unit_roundoff(dtype) - 1)) {
  if (most_ == 0) return;
  parts_.resize(ranks.front()->spec().modules.modules().size());
  for (models::Model* model : ranks)
    for (const models::Linear* linear : model->decoder_linears()) {
      if (linear->module() < 0) continue;
      const at::Tensor values = linear->weight().unpacked();
      parts_[linear->module()].push_back(
          {linear->slice().has, squares_along(values, 1), squares_along(values, 0)});
    }
}

// By norms of A and B, which bound those of D from above.
bool MergeBound::preserves_others(const adapters::LoraTarget& target) const {
  const std::vector<double> a = squares(target.a, false), b = squares(target.b, true);
  const double scale = double{target.scale} * target.scale / (most_ * most_);
  return std::ranges::all_of(parts_[target.module], [&](const Part& part) {
    const std::vector<double> inputs = cut(a, part.has.in), outputs = cut(b, part.has.out);
    return all_within(scale * sum(inputs), outputs, part.rows) &&
           all_within(scale * sum(outputs), inputs, part.columns);
  });
}

serving::MergeUse MergeBound::use_of(const adapters::AdapterSpec& spec,
                                     const adapters::ModuleTable& modules) const {
  using serving::MergeUse;
  const auto all = [&](auto&& holds) {
    return std::ranges::all_of(spec.targets, [&](const adapters::LoraTarget& target) {
      return !on_merged_linear(target, modules) || holds(target);
    });
  };
  // The comparison is false for NaN, so NaN is never merged.
  if (!all([](const auto& target) { return largest_change(target) <= kLargestChange; }))
    return MergeUse::kNever;
  if (most_ == 0 || !all([&](const auto& target) { return preserves_others(target); }))
    return MergeUse::kAlone;
  return MergeUse::kAmongOthers;
}

}  // namespace valora
