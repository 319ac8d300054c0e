#include "kernels/cuda/testing/cases/factors.h"

#include <algorithm>
#include <numeric>

namespace valora::kernels::cuda {

FactorPair Factors::add(int rank, int in, int out, int rows_per_piece, Random& random) {
  FactorPair pair{rank, in, out, {}, {}, {}, {}};
  pair.a = random.values(static_cast<size_t>(rank) * in, dtype_, 0.1f);
  pair.b = random.values(static_cast<size_t>(out) * rank, dtype_, 0.1f);
  pair.placed_a = place(pair.a, rank, in, rows_per_piece);
  pair.placed_b = place(pair.b, out, rank, rows_per_piece);
  return pair;
}

PlacedFactor Factors::place(const std::vector<float>& values, int rows, int width,
                            int rows_per_piece) {
  PlacedFactor placed;
  placed.rows_per_piece = rows_per_piece;
  placed.first_address = pieces_.size();
  const int step = rows_per_piece > 0 ? rows_per_piece : std::max(rows, 1);
  for (int row = 0; row < rows; row += step) {
    placed.pieces.push_back(pieces_.size());
    const auto begin = values.begin() + static_cast<int64_t>(row) * width;
    pieces_.emplace_back(begin, begin + static_cast<int64_t>(std::min(step, rows - row)) * width);
  }
  return placed;
}

void Factors::upload(Random& random) {
  std::vector<size_t> order(pieces_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  random.shuffle(order);
  size_t bytes = 0;
  std::vector<size_t> offsets(pieces_.size());
  for (const size_t i : order) {
    offsets[i] = bytes;
    // Rounded up to a multiple of 16, plus a gap of 16.
    bytes += (pieces_[i].size() * size_of(dtype_) + 15) / 16 * 16 + 16;
  }
  memory_.emplace(bytes);
  std::vector<std::byte> packed(bytes, std::byte{0xff});
  for (const size_t i : order)
    pack(pieces_[i].data(), pieces_[i].size(), dtype_, packed.data() + offsets[i]);
  memory_->upload(packed.data(), bytes);
  for (const size_t offset : offsets) addresses_.push_back(memory_->data() + offset);
  table_.emplace(addresses_);
}

DeviceLoraFactor Factors::factor(const PlacedFactor& placed) const {
  if (placed.pieces.empty()) return {};
  if (placed.rows_per_piece == 0) return {addresses_[placed.first_address], nullptr, 0};
  return {nullptr, table_->data() + placed.first_address, placed.rows_per_piece};
}

DeviceLoraModule Factors::module(const FactorPair& pair, float scale) const {
  return {factor(pair.placed_a), factor(pair.placed_b), pair.rank, pair.in, pair.out, scale};
}

}  // namespace valora::kernels::cuda
