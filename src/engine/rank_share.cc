#include "engine/rank_share.h"

#include <algorithm>
#include <map>

namespace valora {
namespace {

using adapters::LoraTarget;
using adapters::Share;

// Rows of a matrix are a part of its bytes.
TensorView rows_of(const TensorView& matrix, const Share& rows) {
  const size_t row = static_cast<size_t>(matrix.shape[1]) * dtype_size(matrix.dtype);
  return {matrix.dtype,
          {rows.size(), matrix.shape[1]},
          matrix.bytes.subspan(static_cast<size_t>(rows.begin) * row,
                               static_cast<size_t>(rows.size()) * row)};
}

// Columns are copied to `copy`, unless they are all.
TensorView columns_of(const TensorView& matrix, const Share& columns, std::vector<uint8_t>& copy) {
  if (columns.size() == matrix.shape[1]) return matrix;
  const size_t value = dtype_size(matrix.dtype);
  const size_t row = static_cast<size_t>(matrix.shape[1]) * value,
               first = static_cast<size_t>(columns.begin) * value,
               size = static_cast<size_t>(columns.size()) * value;
  copy.resize(static_cast<size_t>(matrix.shape[0]) * size);
  for (size_t r = 0; r < static_cast<size_t>(matrix.shape[0]); ++r)
    std::ranges::copy(matrix.bytes.subspan(r * row + first, size), copy.begin() + r * size);
  return {matrix.dtype, {matrix.shape[0], columns.size()}, copy};
}

at::Tensor output_part(const std::vector<float>& values, const Share& share) {
  return at::tensor(at::ArrayRef<float>(values).slice(share.begin, share.size()), at::kFloat);
}

}  // namespace

bool RankShare::has(int module) const {
  return rank_ == 0 || !modules_.modules()[static_cast<size_t>(module)].visual;
}

adapters::MatrixSlice RankShare::slice(int module) const {
  return slice_of(modules_.modules()[static_cast<size_t>(module)], rank_, ranks_);
}

std::vector<ops::LoraShape> RankShare::shapes(const adapters::AdapterSpec& spec) const {
  std::vector<ops::LoraShape> shapes;
  for (const LoraTarget& target : spec.targets) {
    if (!has(target.module)) continue;
    const adapters::MatrixSlice part = slice(target.module);
    shapes.push_back({target.module, target.rank, part.in.size(), part.out.size(), target.scale});
  }
  return shapes;
}

void RankShare::write(const adapters::AdapterSpec& spec, const ops::PanelLayout& layout,
                      std::span<std::byte* const> blocks) const {
  size_t index = 0;
  std::vector<uint8_t> copy;
  for (const LoraTarget& target : spec.targets) {
    if (!has(target.module)) continue;
    const adapters::MatrixSlice part = slice(target.module);
    layout.write(index++, columns_of(target.a, part.in, copy), rows_of(target.b, part.out), blocks);
  }
}

void RankShare::set_outputs(const adapters::AdapterSpec& spec, ops::AdapterWeights& weights) const {
  std::map<int, ops::OutputChange> changes;
  for (const adapters::OutputValues& shift : spec.shifts) {
    // Added once to a sum of the ranks.
    if (!has(shift.module) || slice(shift.module).in.begin > 0) continue;
    changes[shift.module].shift = output_part(shift.values, slice(shift.module).out);
  }
  for (const adapters::OutputValues& gain : spec.gains)
    if (has(gain.module))
      changes[gain.module].gain = output_part(gain.values, slice(gain.module).out);
  for (auto& [module, change] : changes) weights.set_output(module, std::move(change));
}

}  // namespace valora
