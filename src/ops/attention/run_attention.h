// Bidirectional attention within runs of rows, computed in parts: for the images, frames and
// windows of vision towers.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "kernels/types/runs.h"

namespace valora::ops {

// Holds the keys and values of all rows and computes the attention of any rows within their runs.
// Rows may be stored, and may attend, in parts of any size, which affects only the last bits of the
// results. Differentiable if gradients are recorded. Invalid arguments throw c10::Error.
class RunAttention {
 public:
  // Run i has rows [ends[i-1], ends[i]).
  RunAttention(std::vector<int64_t> ends, int64_t heads, int64_t dim, at::ScalarType dtype,
               at::Device device);

  // Stores the keys and values of the next rows, [count, heads, dim] with contiguous heads per row.
  void store(const at::Tensor& k, const at::Tensor& v);
  // Scales by 1/sqrt(dim). q: [count, heads, dim], for rows starting at `begin`; all rows must have
  // been stored. → [count, heads * dim]
  at::Tensor attend(int64_t begin, const at::Tensor& q) const;
  // Clears the stored rows for the next layer.
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
  // The parts [2 (K, V), count, heads, dim] as given; empty unless gradients are recorded.
  std::vector<at::Tensor> recorded_;
};

}  // namespace valora::ops
