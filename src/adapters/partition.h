// Splits the weights of a linear among ranks (S-LoRA §6): by outputs (column parallel) or by inputs
// (row parallel), in whole units such as heads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

namespace valora::adapters {

enum class Split : uint8_t {
  kWhole,  // one copy for all ranks, of which the first computes with it
  kEach,   // a copy on each rank, all of which compute with it
  kOutputs,
  kInputs
};

inline constexpr size_t kMostSections = 3;

struct Partition {
  Split split = Split::kWhole;
  int64_t units = 1;  // divides the inputs, or the outputs of each section
  // The outputs consist of adjacent sections, each of which is split among all ranks. Their sizes
  // relative to each other; 0: no such section.
  std::array<int64_t, kMostSections> sections = {1};
  bool operator==(const Partition&) const = default;
};

struct Share {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Share&) const = default;
};

// The share of `units` that one of `ranks` ranks gets. With fewer units than ranks, several ranks
// share a unit.
inline Share share_of(int64_t units, int64_t rank, int64_t ranks) {
  const int64_t begin = units * rank / ranks;
  return {begin, std::max(begin + 1, units * (rank + 1) / ranks)};
}

// A share of each of `count` sections.
struct Shares {
  std::array<Share, kMostSections> of;
  size_t count = 1;
  int64_t size() const {
    return std::accumulate(of.begin(), of.begin() + count, int64_t{0},
                           [](int64_t sum, const Share& share) { return sum + share.size(); });
  }
  bool operator==(const Shares&) const = default;
};

// The rows (outputs) and columns (inputs) of a weight that a rank holds.
struct MatrixSlice {
  Shares out;
  Share in;
  bool operator==(const MatrixSlice&) const = default;
};

inline MatrixSlice slice_of(const Partition& partition, int64_t out, int64_t in, int rank,
                            int ranks) {
  const Share units = share_of(partition.units, rank, ranks);
  const auto cut = [&](int64_t begin, int64_t size) {
    const int64_t unit = size / partition.units;
    return Share{begin + units.begin * unit, begin + units.end * unit};
  };
  const auto cut_outputs = [&] {
    const auto& sizes = partition.sections;
    const int64_t unit = out / std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    Shares shares{{}, 0};
    for (int64_t begin = 0; begin < out; begin += sizes[shares.count++] * unit)
      shares.of[shares.count] = cut(begin, sizes[shares.count] * unit);
    return shares;
  };
  const bool splits_outputs = partition.split == Split::kOutputs && units.size() < partition.units;
  return {splits_outputs ? cut_outputs() : Shares{{Share{0, out}}},
          partition.split == Split::kInputs ? cut(0, in) : Share{0, in}};
}

}  // namespace valora::adapters
