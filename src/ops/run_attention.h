// Bidirectional attention within runs of rows, in parts: the images, frames and windows of the
// vision towers.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "kernels/types/runs.h"

namespace valora::ops {

// The keys and values of all rows, and the attention of any of them to its run. Rows may be stored,
// and may attend, in any parts; the results depend on the parts in their last bits alone.
// Differentiable if gradients are recorded. Invalid arguments throw c10::Error.
class RunAttention {
 public:
  // Runs of rows [ends[i-1], ends[i]).
  RunAttention(std::vector<int64_t> ends, int64_t heads, int64_t dim, at::ScalarType dtype,
               at::Device device);

  // Keeps the keys and values of the next rows, [count, heads, dim] with contiguous heads per row.
  void store(const at::Tensor& k, const at::Tensor& v);
  // Scaled by 1/sqrt(dim). q: [count, heads, dim], of rows from `begin` on; all rows must be
  // stored. → [count, heads * dim]
  at::Tensor attend(int64_t begin, const at::Tensor& q) const;
  // Forgets what was stored: the next layer begins.
  void clear() {
    stored_ = 0;
    recorded_.clear();
  }

 private:
  void check(const at::Tensor& x, int64_t begin) const;

  kernels::Runs runs_;
  int64_t heads_, dim_, stored_ = 0;
  bool packed_;
  at::Tensor data_;  // packed, or [2 (K, V), rows, heads, dim]
  // The parts [2 (K, V), count, heads, dim] as they were given; empty unless gradients are
  // recorded.
  std::vector<at::Tensor> recorded_;
};

}  // namespace valora::ops
