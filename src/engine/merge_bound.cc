#include "engine/merge_bound.h"

#include <algorithm>
#include <cmath>

#include "adapters/tensor_values.h"

namespace valora {
namespace {

// Limit of the root mean square of scale · B A: several hundred times what training produces.
constexpr double kLargestChange = 16;

// An upper bound of the root mean square of scale · B A.
double largest_change(const adapters::LoraTarget& target) {
  return std::abs(target.scale) * adapters::norm_of(target.a) * adapters::norm_of(target.b) /
         std::sqrt(static_cast<double>(target.a.shape[1]) * static_cast<double>(target.b.shape[0]));
}

}  // namespace

bool safe_to_merge(const adapters::AdapterSpec& spec, const adapters::ModuleTable& modules) {
  return std::ranges::all_of(spec.targets, [&](const adapters::LoraTarget& target) {
    // The comparison is false for NaN, so NaN is not safe.
    const adapters::Module& module = modules.modules()[target.module];
    return module.visual || module.kind != adapters::ModuleKind::kLinear ||
           largest_change(target) <= kLargestChange;
  });
}

}  // namespace valora
