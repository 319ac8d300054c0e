#include "kernels/cpu/delta/delta_rule.h"

#include "kernels/cpu/isa/clones.h"
#include "kernels/types/state_layout.h"

namespace valora::kernels {
namespace {

constexpr int64_t kHalf = kStateTile / 2;
using Half = float __attribute__((vector_size(4 * kHalf)));

// Sums over the rows of a tile, in four partial sums with the same order in every pass.
struct Sums {
  Half left[4] = {}, right[4] = {};
};

// place: which partial sum. Rows beyond the last group of four use 0.
inline __attribute__((always_inline)) void add_row(Sums& sums, int place, Half left, Half right,
                                                   float factor) {
  sums.left[place] += left * factor;
  sums.right[place] += right * factor;
}
inline __attribute__((always_inline)) void write_sums(const Sums& s, float* to) {
  const Half left = (s.left[0] + s.left[1]) + (s.left[2] + s.left[3]),
             right = (s.right[0] + s.right[1]) + (s.right[2] + s.right[3]);
  __builtin_memcpy(to, &left, sizeof left);
  __builtin_memcpy(to + kHalf, &right, sizeof right);
}

// sums += S[i] · key[i]
inline __attribute__((always_inline)) void read_row(const float* state, int64_t i, const float* key,
                                                    int place, Sums& sums) {
  Half left, right;
  __builtin_memcpy(&left, state + i * kStateTile, sizeof left);
  __builtin_memcpy(&right, state + i * kStateTile + kHalf, sizeof right);
  add_row(sums, place, left, right, key[i]);
}

// Row t's update of the matrix, combined with reading the matrix by its query and by the next row's
// key.
struct RowUpdate {
  float decay;
  Half left, right;  // β·(v - Sᵀk)
  const float *key, *query, *next;
};

inline __attribute__((always_inline)) void update_row(float* state, int64_t i, const RowUpdate& u,
                                                      int place, Sums& out, Sums& ahead) {
  Half left, right;
  float* const row = state + i * kStateTile;
  __builtin_memcpy(&left, row, sizeof left);
  __builtin_memcpy(&right, row + kHalf, sizeof right);
  left = left * u.decay + u.left * u.key[i];
  right = right * u.decay + u.right * u.key[i];
  __builtin_memcpy(row, &left, sizeof left);
  __builtin_memcpy(row + kHalf, &right, sizeof right);
  add_row(out, place, left, right, u.query[i]);
  add_row(ahead, place, left, right, u.next[i]);
}

}  // namespace

// Each pass over the tile finishes one row and already sums S[i] · key[i] for the next.
VALORA_CLONES void run_tile(const HeadRows& h, int64_t column, float* state) {
  float memory[kStateTile], delta[kStateTile];
  const int64_t n = h.key_dim, whole = n / 4 * 4;
  {
    Sums sums;
    for (int64_t i = 0; i < whole; i += 4)
      for (int place = 0; place < 4; ++place) read_row(state, i + place, h.keys, place, sums);
    for (int64_t i = whole; i < n; ++i) read_row(state, i, h.keys, 0, sums);
    write_sums(sums, memory);
  }
  for (int64_t t = 0; t < h.rows; ++t) {
    const float* const value = h.values + t * h.ld + column;
    for (int64_t c = 0; c < kStateTile; ++c)
      delta[c] = h.rates[t] * (value[c] - h.decays[t] * memory[c]);
    RowUpdate u{h.decays[t], {}, {}, h.keys + t * n, h.queries + t * n, h.keys + t * n};
    if (t + 1 < h.rows) u.next += n;  // unused for the last row
    __builtin_memcpy(&u.left, delta, sizeof u.left);
    __builtin_memcpy(&u.right, delta + kHalf, sizeof u.right);
    Sums out, ahead;
    for (int64_t i = 0; i < whole; i += 4)
      for (int place = 0; place < 4; ++place) update_row(state, i + place, u, place, out, ahead);
    for (int64_t i = whole; i < n; ++i) update_row(state, i, u, 0, out, ahead);
    write_sums(out, h.outputs + t * h.ld + column);
    write_sums(ahead, memory);
  }
}

}  // namespace valora::kernels
