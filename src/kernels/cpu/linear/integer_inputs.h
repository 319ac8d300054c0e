// What the products of one launch with weights in integers need of x, if it stays as it is: its
// values as the kernels read them, and their sums per group. Made once, for all slices and threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/linear/partition.h"
#include "kernels/cpu/linear/project.h"
#include "kernels/cpu/product/integer_product.h"

namespace valora::kernels {

template <typename T>
class IntegerInputs {
 public:
  // Nothing is done if no slice has such integers. x, [m, in] with a row stride of ldx elements,
  // must outlive this.
  void prepare(const KernelSet<T>& kernels, const T* x, int64_t m, int64_t ldx,
               std::span<const Slice<T>> slices, const ParallelFor& parallel) {
    x_ = x;
    ldx_ = ldx;
    int64_t k = 0, floats = 0;
    for (size_t s = 0; s < slices.size(); ++s) {
      const IntegerPanels* w = slices[s].integers;
      if (!w || w->input_block > 0) continue;
      k = w->k;
      if (needs_group_sums(*w, kernels.nibble_offset))
        floats += plan_sums(*w, s, slices, m, floats);
    }
    if (k == 0) return;
    const bool widens = sizeof(T) == 2 && kernels.float_inputs;
    k_ = k;
    memory_.reset(new float[floats + (widens ? m * k : 0)]);
    wide_ = widens ? memory_.get() + floats : nullptr;
    if (floats == 0 && !widens) return;
    const auto prepare_rows = [&](int64_t begin, int64_t end) {
      if (widens) widen_rows(begin, end);
      for (size_t s = 0; s < slices.size(); ++s)
        if (const Sums& sums = sums_[s]; sums.at >= 0 && sums.owner)
          sum_groups(x + begin * ldx, end - begin, ldx, k, slices[s].integers->group,
                     memory_.get() + sums.at + begin * sums.groups);
    };
    if (m * k < kSerialInputs)
      prepare_rows(0, m);
    else
      parallel(0, m, 1, prepare_rows);
  }

  // The product of a slice with integers, with its inputs from `row` on.
  IntegerProduct product(int64_t slice, int64_t row, const IntegerOutputs& outputs) const {
    IntegerProduct p{outputs};
    p.ldx = wide_ ? k_ : ldx_;
    p.x = wide_ ? static_cast<const void*>(wide_ + row * k_) : x_ + row * ldx_;
    const Sums& sums = sums_[slice];
    if (sums.at >= 0) p.group_sums = memory_.get() + sums.at + row * sums.groups;
    p.ldg = sums.groups;
    return p;
  }

 private:
  // The sums of a slice, [m, groups] in memory_. Slices with the same groups share them.
  struct Sums {
    int64_t at = -1, groups = 0;
    bool owner = false;
  };

  // → the floats that the sums take.
  int64_t plan_sums(const IntegerPanels& w, size_t slice, std::span<const Slice<T>> slices,
                    int64_t m, int64_t at) {
    for (size_t s = 0; s < slice; ++s)
      if (sums_[s].owner && slices[s].integers->group == w.group) {
        sums_[slice] = {sums_[s].at, sums_[s].groups, false};
        return 0;
      }
    const int64_t groups = (w.k + w.group - 1) / w.group;
    sums_[slice] = {at, groups, true};
    return m * groups;
  }

  void widen_rows(int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x_ + row * ldx_;
      float* to = wide_ + row * k_;
      for (int64_t i = 0; i < k_; ++i) to[i] = to_float(from[i]);
    }
  }

  const T* x_ = nullptr;
  int64_t ldx_ = 0, k_ = 0;
  std::unique_ptr<float[]> memory_;
  float* wide_ = nullptr;  // [m, k]
  std::array<Sums, kMaxSlices> sums_{};
};

}  // namespace valora::kernels
