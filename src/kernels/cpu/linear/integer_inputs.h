// Prepares x for products with integer weights when x itself is not rounded: its values in the type
// that the kernels read, and their sums per group. Done once per launch, for all slices and
// threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/linear/launch_memory.h"
#include "kernels/cpu/linear/partition.h"
#include "kernels/cpu/linear/project.h"
#include "kernels/cpu/product/integer_product.h"

namespace valora::kernels {

template <typename T>
class IntegerInputs {
 public:
  // Does nothing if no slice needs it. x: [m, in] with a row stride of ldx elements; must outlive
  // this object.
  void prepare(const KernelSet<T>& kernels, const T* x, int64_t m, int64_t ldx,
               std::span<const Slice<T>> slices, const ParallelFor& parallel) {
    x_ = x;
    ldx_ = ldx;
    int64_t k = 0, padded = 0, floats = 0;
    for (size_t s = 0; s < slices.size(); ++s) {
      const IntegerPanels* w = slices[s].integers;
      if (!w || w->input_block > 0) continue;
      k = w->k;
      padded = inputs_of_chunks(*w);
      if (needs_group_sums(*w, kernels.integer_offsets))
        floats += plan_sums(*w, s, slices, m, floats);
    }
    if (k == 0) return;
    k_ = k;
    padded_ = padded;
    widens_ = sizeof(T) == 2 && kernels.float_inputs;
    const bool copies = widens_ || padded != k;
    if (floats == 0 && !copies) return;
    memory_.emplace((floats + (copies ? m * padded : 0)) * static_cast<int64_t>(sizeof(float)));
    sums_memory_ = reinterpret_cast<float*>(memory_->data());
    copy_ = copies ? sums_memory_ + floats : nullptr;
    const auto prepare_rows = [&](int64_t begin, int64_t end) {
      if (copy_) copy_rows(begin, end);
      for (size_t s = 0; s < slices.size(); ++s)
        if (const Sums& sums = sums_[s]; sums.at >= 0 && sums.owner)
          sum_groups(x + begin * ldx, end - begin, ldx, k, slices[s].integers->group,
                     sums_memory_ + sums.at + begin * sums.groups);
    };
    if (m * k < kSerialInputs)
      prepare_rows(0, m);
    else
      parallel(0, m, 1, prepare_rows);
  }

  // The arguments of a slice's product with integer weights, for inputs starting at `row`.
  IntegerProduct product(int64_t slice, int64_t row, const IntegerOutputs& outputs) const {
    IntegerProduct p{outputs};
    p.ldx = copy_ ? padded_ : ldx_;
    p.x = copy_ ? copied_row(row) : x_ + row * ldx_;
    const Sums& sums = sums_[slice];
    if (sums.at >= 0) p.group_sums = sums_memory_ + sums.at + row * sums.groups;
    p.ldg = sums.groups;
    return p;
  }

 private:
  // The group sums of a slice, [m, groups] in sums_memory_. Slices with equal groups share them.
  struct Sums {
    int64_t at = -1, groups = 0;
    bool owner = false;
  };

  // → the number of floats needed for the slice's sums.
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

  void* copied_row(int64_t row) const {
    if (widens_) return copy_ + row * padded_;
    return reinterpret_cast<T*>(copy_) + row * padded_;
  }

  void copy_rows(int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x_ + row * ldx_;
      if (widens_)
        copy_row(from, static_cast<float*>(copied_row(row)), [](T x) { return to_float(x); });
      else
        copy_row(from, static_cast<T*>(copied_row(row)), [](T x) { return x; });
    }
  }

  template <typename E, typename Convert>
  void copy_row(const T* from, E* to, const Convert& convert) const {
    for (int64_t i = 0; i < k_; ++i) to[i] = convert(from[i]);
    std::fill(to + k_, to + padded_, E{});
  }

  const T* x_ = nullptr;
  int64_t ldx_ = 0, k_ = 0, padded_ = 0;
  bool widens_ = false;
  std::optional<LaunchMemory> memory_;
  float* sums_memory_ = nullptr;
  float* copy_ = nullptr;  // [m, padded_] of float, or of T unless widens_; null: x itself is read
  std::array<Sums, kMaxSlices> sums_{};
};

}  // namespace valora::kernels
