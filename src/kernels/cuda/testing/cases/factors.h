// Random factors of adapters, in pieces scattered over one allocation.
#pragma once

#include <optional>
#include <vector>

#include "kernels/cuda/lora.h"
#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {

// A factor's pieces in the order of its rows, as indices into Factors.
struct PlacedFactor {
  std::vector<size_t> pieces;
  size_t first_address = 0;
  int rows_per_piece = 0;
};
struct FactorPair {
  int rank = 0, in = 0, out = 0;
  std::vector<float> a, b;  // [rank, in], [out, rank]
  PlacedFactor placed_a, placed_b;
};

class Factors {
 public:
  explicit Factors(Dtype dtype) : dtype_(dtype) {}
  // rows_per_piece 0: the whole factor is one piece.
  FactorPair add(int rank, int in, int out, int rows_per_piece, Random& random);
  // Places all pieces 16-byte aligned in random order, with NaN between them. Nothing may be added
  // afterwards.
  void upload(Random& random);
  DeviceLoraModule module(const FactorPair& pair, float scale) const;

 private:
  PlacedFactor place(const std::vector<float>& values, int rows, int width, int rows_per_piece);
  DeviceLoraFactor factor(const PlacedFactor& placed) const;

  Dtype dtype_;
  std::vector<std::vector<float>> pieces_;
  std::vector<const void*> addresses_;  // addresses of the pieces after upload()
  std::optional<DeviceMemory> memory_;
  std::optional<DeviceTable<const void*>> table_;
};

}  // namespace valora::kernels::cuda
