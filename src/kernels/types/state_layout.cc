#include "kernels/types/state_layout.h"

#include <algorithm>

namespace valora::kernels {
namespace {

constexpr size_t kLine = 64;

size_t whole_lines(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
size_t row_bytes(const StateShape& s) {
  return whole_lines(static_cast<size_t>(s.channels) * s.element);
}
size_t matrix_bytes(const StateShape& s) {
  return whole_lines(static_cast<size_t>(head_floats(s)) * sizeof(float));
}

}  // namespace

size_t StateLayout::least_block_bytes(const StateShape& shape) {
  return shape.layers == 0 ? 0 : std::max(row_bytes(shape), matrix_bytes(shape));
}

// Places large parts first, each in the first block with room; small parts fill the gaps.
StateLayout::StateLayout(const StateShape& shape, size_t block_bytes) : shape_(shape) {
  if (shape.layers == 0) return;
  places_.resize(static_cast<size_t>(shape.layers * parts()));
  std::vector<size_t> used;  // bytes of each block
  size_t first = 0;          // blocks before it have no room for a part of the current kind
  const auto place = [&](size_t bytes) {
    while (first < used.size() && used[first] + bytes > block_bytes) ++first;
    if (first == used.size()) used.push_back(0);
    const Place place{static_cast<int32_t>(first), used[first]};
    used[first] += bytes;
    return place;
  };
  const bool rows_first = row_bytes(shape) > matrix_bytes(shape);
  for (const bool rows : {rows_first, !rows_first}) {
    first = 0;
    const int64_t begin = rows ? 0 : shape.taps - 1, end = rows ? shape.taps - 1 : parts();
    for (int64_t layer = 0; layer < shape.layers; ++layer)
      for (int64_t part = begin; part < end; ++part)
        places_[static_cast<size_t>(layer * parts() + part)] =
            place(rows ? row_bytes(shape) : matrix_bytes(shape));
  }
  blocks_ = static_cast<int32_t>(used.size());
}

}  // namespace valora::kernels
