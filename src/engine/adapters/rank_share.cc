#include "engine/adapters/rank_share.h"

#include <algorithm>
#include <map>

namespace valora {
namespace {

using adapters::LoraTarget;
using adapters::Share;
using adapters::Shares;

// Adjacent rows are returned as a view of the matrix's bytes; others are copied to `copy`.
TensorView rows_of(const TensorView& matrix, const Shares& rows, std::vector<uint8_t>& copy) {
  const size_t row = static_cast<size_t>(matrix.shape[1]) * dtype_size(matrix.dtype);
  const auto bytes_of = [&](const Share& section) {
    return matrix.bytes.subspan(static_cast<size_t>(section.begin) * row,
                                static_cast<size_t>(section.size()) * row);
  };
  const std::vector<int64_t> shape{rows.size(), matrix.shape[1]};
  if (rows.count == 1) return {matrix.dtype, shape, bytes_of(rows.of[0])};
  copy.clear();
  for (size_t i = 0; i < rows.count; ++i) {
    const auto section = bytes_of(rows.of[i]);
    copy.insert(copy.end(), section.begin(), section.end());
  }
  return {matrix.dtype, shape, copy};
}

// Copies the columns to `copy`, unless they are the whole matrix.
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

at::Tensor output_part(const std::vector<float>& values, const Shares& shares) {
  std::vector<float> part;
  for (size_t i = 0; i < shares.count; ++i)
    part.insert(part.end(), values.begin() + shares.of[i].begin, values.begin() + shares.of[i].end);
  return at::tensor(part, at::kFloat);
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
  std::vector<uint8_t> inputs, outputs;
  for (const LoraTarget& target : spec.targets) {
    if (!has(target.module)) continue;
    const adapters::MatrixSlice part = slice(target.module);
    layout.write(index++, columns_of(target.a, part.in, inputs),
                 rows_of(target.b, part.out, outputs), blocks);
  }
}

void RankShare::set_outputs(const adapters::AdapterSpec& spec, ops::AdapterWeights& weights) const {
  std::map<int, ops::OutputChange> changes;
  for (const adapters::OutputValues& shift : spec.shifts) {
    // Added on one rank only, because the ranks sum their outputs.
    if (!has(shift.module) || slice(shift.module).in.begin > 0) continue;
    changes[shift.module].shift = output_part(shift.values, slice(shift.module).out);
  }
  for (const adapters::OutputValues& gain : spec.gains)
    if (has(gain.module))
      changes[gain.module].gain = output_part(gain.values, slice(gain.module).out);
  for (auto& [module, change] : changes) weights.set_output(module, std::move(change));
}

}  // namespace valora
