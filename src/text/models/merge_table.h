// A flat hash table of merges: maps two adjacent tokens to their rank and result.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace valora::text {

struct Merge {
  int32_t rank = -1;
  int32_t result = -1;
};

class MergeTable {
 public:
  explicit MergeTable(size_t merges) : slots_(std::bit_ceil(merges * 2 + 2)) {}

  // For a repeated pair, the last merge wins. Insert at most as many pairs as given to the
  // constructor.
  void insert(int32_t left, int32_t right, Merge merge) {
    const uint64_t pair = key(left, right);
    slots_[slot_of(pair)] = {pair, merge};
  }
  // Null if the two tokens do not merge.
  const Merge* find(int32_t left, int32_t right) const {
    const Slot& slot = slots_[slot_of(key(left, right))];
    return slot.key == kEmpty ? nullptr : &slot.merge;
  }

 private:
  static constexpr uint64_t kEmpty =
      ~uint64_t{0};  // no pair has this key, because ids are not negative
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };

  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  // The slot that holds the key, or an empty slot for it. At most half of the slots are used.
  size_t slot_of(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t i = (key * 0x9E3779B97F4A7C15ull >> 20) & mask;
    while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask;
    return i;
  }

  std::vector<Slot> slots_;
};

}  // namespace valora::text
