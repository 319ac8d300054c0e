// A thread's part of a head's matrix (kernels/types/state_layout.h): of one column, the rows that
// one lane in four has. Rows of the lanes: four by turns if they are held in registers, for loads
// of keys and queries by fours.
#pragma once

#include "kernels/types/state_layout.h"

namespace valora::kernels::cuda {

inline constexpr int kLanesOfColumn = 4;

// Sums over a thread's rows: the matrix times the key, and times the query.
struct DeltaSums {
  float by_key = 0, by_query = 0;
};

// Element (row, column) of a matrix.
__device__ inline int matrix_element(int row, int column, int key_dim) {
  constexpr int kTile = static_cast<int>(kStateTile);
  return (column / kTile * key_dim + row) * kTile + column % kTile;
}

// In registers, for up to 4 · kHeld keys; keys and queries are padded to that with zeros. A thread
// has one column.
template <int kHeld>
class Matrix {
 public:
  // from: null for zeros.
  __device__ Matrix(const float* from, float*, int key_dim, int column, int, int, int lane)
      : key_dim_(key_dim), column_(column), lane_(lane) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      values_[i] = from != nullptr && row(i) < key_dim
                       ? from[matrix_element(row(i), column, key_dim)]
                       : 0.0f;
  }

  __device__ void write(float* to) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (row(i) < key_dim_) to[matrix_element(row(i), column_, key_dim_)] = values_[i];
  }

  __device__ DeltaSums sums(const float* key, const float* query, int) const {
    DeltaSums sums;
#pragma unroll
    for (int i = 0; i < kHeld; i += 4) {
      const float4 k = four(key, i), q = four(query, i);
      sums.by_key += values_[i] * k.x + values_[i + 1] * k.y;
      sums.by_key += values_[i + 2] * k.z + values_[i + 3] * k.w;
      sums.by_query += values_[i] * q.x + values_[i + 1] * q.y;
      sums.by_query += values_[i + 2] * q.z + values_[i + 3] * q.w;
    }
    return sums;
  }
  // S ← decay · S + key ⊗ delta
  __device__ void update(float decay, float delta, const float* key, int) {
#pragma unroll
    for (int i = 0; i < kHeld; i += 4) {
      const float4 k = four(key, i);
      values_[i] = values_[i] * decay + k.x * delta;
      values_[i + 1] = values_[i + 1] * decay + k.y * delta;
      values_[i + 2] = values_[i + 2] * decay + k.z * delta;
      values_[i + 3] = values_[i + 3] * decay + k.w * delta;
    }
  }

 private:
  __device__ int row(int i) const { return i / 4 * 4 * kLanesOfColumn + 4 * lane_ + i % 4; }
  __device__ float4 four(const float* x, int i) const {
    return reinterpret_cast<const float4*>(x)[i / 4 * kLanesOfColumn + lane_];
  }

  float values_[kHeld];
  int key_dim_, column_, lane_;
};

// In the pool, where the state after the span's rows will be, for any number of keys. A thread has
// the columns `column`, `column` + `step` and so on.
template <>
class Matrix<0> {
 public:
  __device__ Matrix(const float* from, float* to, int key_dim, int column, int columns, int step,
                    int lane)
      : values_(to),
        key_dim_(key_dim),
        column_(column),
        columns_(columns),
        step_(step),
        lane_(lane) {
    if (from == to) return;
    each([&](int i) { to[i] = from != nullptr ? from[i] : 0.0f; });
  }

  __device__ void write(float* to) const {
    if (to == values_) return;
    each([&](int i) { to[i] = values_[i]; });
  }

  __device__ DeltaSums sums(const float* key, const float* query, int column) const {
    DeltaSums sums;
    for (int row = lane_; row < key_dim_; row += kLanesOfColumn) {
      const float value = values_[matrix_element(row, column, key_dim_)];
      sums.by_key += value * key[row];
      sums.by_query += value * query[row];
    }
    return sums;
  }
  __device__ void update(float decay, float delta, const float* key, int column) {
    for (int row = lane_; row < key_dim_; row += kLanesOfColumn) {
      float& value = values_[matrix_element(row, column, key_dim_)];
      value = value * decay + key[row] * delta;
    }
  }

 private:
  template <typename Body>
  __device__ void each(const Body& body) const {
    for (int column = column_; column < columns_; column += step_)
      for (int row = lane_; row < key_dim_; row += kLanesOfColumn)
        body(matrix_element(row, column, key_dim_));
  }

  float* values_;
  int key_dim_, column_, columns_, step_, lane_;
};

}  // namespace valora::kernels::cuda
