// How ranks share the weights of a linear (S-LoRA §6): by its outputs (column parallel) or by its
// inputs (row parallel), each in whole units such as heads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace valora::adapters {

enum class Split : uint8_t { kWhole, kOutputs, kInputs };

struct Partition {
  Split split = Split::kWhole;
  int64_t units = 1;  // a divisor of the outputs or inputs
  bool operator==(const Partition&) const = default;
};

struct Share {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Share&) const = default;
};

// Of `units` things, those of one of `ranks` ranks. With fewer units than ranks, several ranks have
// the same one.
inline Share share_of(int64_t units, int64_t rank, int64_t ranks) {
  const int64_t begin = units * rank / ranks;
  return {begin, std::max(begin + 1, units * (rank + 1) / ranks)};
}

// The rows (outputs) and columns (inputs) of a weight that a rank has.
struct MatrixSlice {
  Share out, in;
  bool operator==(const MatrixSlice&) const = default;
};

inline MatrixSlice slice_of(const Partition& partition, int64_t out, int64_t in, int rank,
                            int ranks) {
  const auto cut = [&](int64_t size) {
    const Share units = share_of(partition.units, rank, ranks);
    const int64_t unit = size / partition.units;
    return Share{units.begin * unit, units.end * unit};
  };
  return {partition.split == Split::kOutputs ? cut(out) : Share{0, out},
          partition.split == Split::kInputs ? cut(in) : Share{0, in}};
}

}  // namespace valora::adapters
