#include "ops/linear/grouped_linear.h"

#include <algorithm>
#include <vector>

#include "ops/device/dispatch.h"
#include "ops/elementwise/gradient.h"
#include "ops/linear/linear_targets.h"

namespace valora::ops {
namespace {

void check_groups(const at::Tensor& x, std::span<const LinearGroup> groups, bool gated) {
  TORCH_CHECK(x.dim() == 2 && !groups.empty(), "grouped linear: x is ", x.sizes());
  int64_t next = 0;
  for (const LinearGroup& group : groups) {
    TORCH_CHECK(group.begin == next && group.begin < group.end, "grouped linear: rows [",
                group.begin, ", ", group.end, ") after row ", next);
    next = group.end;
    for (const Weight* w : {group.linear.weight, gated ? group.up.weight : group.linear.weight})
      TORCH_CHECK(w->in() == x.size(1) && w->out() == groups[0].linear.weight->out(),
                  "grouped linear: a weight of [", w->out(), ", ", w->in(), "], x is ", x.sizes());
  }
  TORCH_CHECK(next == x.size(0), "grouped linear: ", next, " rows of ", x.size(0));
}

at::Tensor rows_of(const at::Tensor& x, const LinearGroup& group) {
  return x.narrow(0, group.begin, group.end - group.begin);
}

void check_linears_of(const at::Tensor& x, std::span<const LinearGroup> groups) {
  check_groups(x, groups, false);
  for (const LinearGroup& group : groups)
    check_linears(rows_of(x, group), {&group.linear, 1}, *group.lora);
}

// True if one launch can compute all groups: the others run apart.
bool runs_together(const at::Tensor& x, std::span<const LinearGroup> groups, bool gated) {
  const auto plain = [](const ModuleWeight& l, const LoraBatch& lora) {
    return target_of(*l.weight) == Target::kCpu && !l.weight->input_rounding() &&
           !lora.changes_output(l.module) && (!lora.touches(l.module) || !has_low_rank_products());
  };
  return !wants_gradient(x) && std::ranges::all_of(groups, [&](const LinearGroup& group) {
    return plain(group.linear, *group.lora) && (!gated || plain(group.up, *group.lora));
  });
}

}  // namespace

at::Tensor grouped_linear(const at::Tensor& x, std::span<const LinearGroup> groups) {
  check_linears_of(x, groups);
  if (runs_together(x, groups, false)) return grouped_cpu(x, groups, std::nullopt, x.scalar_type());
  std::vector<at::Tensor> parts;
  for (const LinearGroup& group : groups)
    parts.push_back(linear(rows_of(x, group), group.linear, *group.lora));
  return at::cat(parts);
}

at::Tensor grouped_linear_float(const at::Tensor& x, std::span<const LinearGroup> groups,
                                const at::Tensor& largest) {
  check_linears_of(x, groups);
  if (runs_together(x, groups, false)) return grouped_cpu(x, groups, std::nullopt, at::kFloat);
  std::vector<at::Tensor> parts;
  for (const LinearGroup& group : groups)
    parts.push_back(linear_float(rows_of(x, group), group.linear, *group.lora,
                                 largest.defined() ? rows_of(largest, group) : largest));
  return at::cat(parts);
}

at::Tensor grouped_gated(const at::Tensor& x, std::span<const LinearGroup> groups,
                         Gate activation) {
  check_groups(x, groups, true);
  for (const LinearGroup& group : groups) {
    const ModuleWeight both[] = {group.linear, group.up};
    check_linears(rows_of(x, group), both, *group.lora);
  }
  if (runs_together(x, groups, true)) return grouped_cpu(x, groups, activation, x.scalar_type());
  std::vector<at::Tensor> parts;
  for (const LinearGroup& group : groups)
    parts.push_back(gated(rows_of(x, group), group.linear, group.up, *group.lora, activation));
  return at::cat(parts);
}

at::Tensor weighted_rows(const at::Tensor& x, const at::Tensor& rows, const at::Tensor& weights) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous() && rows.dim() == 2 &&
                  rows.sizes() == weights.sizes() && rows.scalar_type() == at::kLong &&
                  weights.scalar_type() == at::kFloat && rows.is_contiguous(),
              "weighted rows: x is ", x.sizes(), ", rows ", rows.sizes(), ", weights ",
              weights.sizes());
  if (target_of(x, wants_gradient(x) || wants_gradient(weights)) == Target::kCpu)
    return weighted_rows_cpu(x, rows, weights.contiguous());
  const at::Tensor chosen =
      x.index_select(0, rows.flatten().to(x.device())).view({rows.size(0), rows.size(1), -1});
  return (chosen * weights.unsqueeze(-1)).sum(1).to(x.scalar_type());
}

}  // namespace valora::ops
