#include "kernels/cpu/delta/gated_delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/isa/clones.h"
#include "kernels/cpu/isa/vector_math.h"
#include "kernels/cpu/work_queue.h"

namespace valora::kernels {
namespace {

constexpr int64_t kRows = 64;      // rows of a span whose keys and queries are prepared together
constexpr float kNormEps = 1e-6f;  // when normalising queries and keys
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

// Keys, queries, values, decays and rates of some rows of a head, and memory for their outputs.
struct HeadRows {
  int64_t rows = 0, key_dim = 0, ld = 0;
  const float *keys = nullptr, *queries = nullptr;  // [rows, key_dim]
  const float *decays = nullptr, *rates = nullptr;  // [rows]
  const float* values = nullptr;                    // [rows, ld], padded to whole tiles
  float* outputs = nullptr;                         // [rows, ld]
};

// Runs one tile of the matrix, [key_dim, kStateTile], in place over all rows. Each pass over the
// tile finishes one row and already sums S[i] · key[i] for the next.
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

// x / √(Σ x² + eps) · scale
template <typename T>
inline __attribute__((always_inline)) void to_length(const T* x, int64_t n, float scale, float* y) {
  const float factor = scale / std::sqrt(dot(x, x, n) + kNormEps);
  for (int64_t i = 0; i < n; ++i) y[i] = to_float(x[i]) * factor;
}
VALORA_CLONES void unit(const float* x, int64_t n, float scale, float* y) {
  to_length(x, n, scale, y);
}
VALORA_CLONES void unit(const bf16* x, int64_t n, float scale, float* y) {
  to_length(x, n, scale, y);
}

// o / √(mean(o²) + eps) · weight · silu(z)
template <typename T>
inline __attribute__((always_inline)) void norm_gated(const float* o, const T* weight, const T* z,
                                                      int64_t n, float eps, T* y) {
  const float scale = 1.0f / std::sqrt(dot(o, o, n) / static_cast<float>(n) + eps);
  for (int64_t i = 0; i < n; ++i) {
    const float gate = to_float(z[i]);
    y[i] = from_float<T>(o[i] * scale * to_float(weight[i]) * gate / (1.0f + exp_approx(-gate)));
  }
}
VALORA_CLONES void norm_row(const float* o, const float* w, const float* z, int64_t n, float eps,
                            float* y) {
  norm_gated(o, w, z, n, eps, y);
}
VALORA_CLONES void norm_row(const float* o, const bf16* w, const bf16* z, int64_t n, float eps,
                            bf16* y) {
  norm_gated(o, w, z, n, eps, y);
}
VALORA_CLONES void widen(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i];
}
VALORA_CLONES void widen(const bf16* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = to_float(x[i]);
}

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

// A thread's scratch memory for the rows of a head.
struct Scratch {
  std::vector<float> keys, queries, decays, rates, values, outputs;
};

// One value head of one span.
template <typename T>
class DeltaHead {
 public:
  DeltaHead(const StateShape& shape, const DeltaInputs<T>& inputs, const DeltaSpan& span,
            int64_t head, T* y, Scratch& scratch)
      : shape_(shape),
        in_(inputs),
        span_(span),
        head_(head),
        key_head_(head / (shape.value_heads / shape.key_heads)),
        ld_((shape.value_dim + kStateTile - 1) / kStateTile * kStateTile),
        y_(y),
        scratch_(scratch) {
    scratch.keys.resize(static_cast<size_t>(kRows * shape.key_dim));
    scratch.queries.resize(scratch.keys.size());
    scratch.decays.resize(kRows);
    scratch.rates.resize(kRows);
    scratch.values.resize(static_cast<size_t>(kRows * ld_));
    scratch.outputs.resize(scratch.values.size());
  }

  void run() {
    float* const state = span_.to[head_];
    const size_t bytes = static_cast<size_t>(head_floats(shape_)) * sizeof(float);
    const float* const from = span_.from ? span_.from[head_] : nullptr;
    if (!from)
      std::memset(state, 0, bytes);
    else if (from != state)
      std::memcpy(state, from, bytes);
    int64_t done = 0;
    for (const DeltaSpan::Kept& kept : span_.kept) {
      if (!kept.to) continue;
      run_rows(done, kept.after, state);
      std::memcpy(kept.to[head_], state, bytes);
      done = kept.after;
    }
    run_rows(done, span_.count, state);
  }

 private:
  void run_rows(int64_t begin, int64_t end, float* state) {
    for (int64_t first = begin; first < end; first += kRows)
      run_some(span_.begin + first, std::min(kRows, end - first), state);
  }

  // Rows [first, first + rows) of the batch.
  void run_some(int64_t first, int64_t rows, float* state) {
    prepare(first, rows);
    const HeadRows head{rows,
                        shape_.key_dim,
                        ld_,
                        scratch_.keys.data(),
                        scratch_.queries.data(),
                        scratch_.decays.data(),
                        scratch_.rates.data(),
                        scratch_.values.data(),
                        scratch_.outputs.data()};
    for (int64_t column = 0; column < ld_; column += kStateTile)
      run_tile(head, column, state + column * shape_.key_dim);
    const int64_t width = shape_.value_heads * shape_.value_dim, place = head_ * shape_.value_dim;
    for (int64_t t = 0; t < rows; ++t)
      norm_row(scratch_.outputs.data() + t * ld_, in_.weight,
               in_.z + (first + t) * in_.ld_z + place, shape_.value_dim, in_.eps,
               y_ + (first + t) * width + place);
  }

  void prepare(int64_t first, int64_t rows) {
    const int64_t keys = shape_.key_heads * shape_.key_dim, dim = shape_.key_dim;
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    for (int64_t t = 0; t < rows; ++t) {
      const T* row = in_.qkv + (first + t) * in_.ld_qkv;
      unit(row + key_head_ * dim, dim, scale, scratch_.queries.data() + t * dim);
      unit(row + keys + key_head_ * dim, dim, 1, scratch_.keys.data() + t * dim);
      float* const value = scratch_.values.data() + t * ld_;
      widen(row + 2 * keys + head_ * shape_.value_dim, shape_.value_dim, value);
      std::fill(value + shape_.value_dim, value + ld_, 0.0f);
      const float a = to_float(in_.a[(first + t) * in_.ld_a + head_]),
                  b = to_float(in_.b[(first + t) * in_.ld_b + head_]);
      scratch_.decays[static_cast<size_t>(t)] =
          std::exp(-in_.rate[head_] * softplus(a + in_.bias[head_]));
      scratch_.rates[static_cast<size_t>(t)] = 1.0f / (1.0f + std::exp(-b));
    }
  }

  const StateShape& shape_;
  const DeltaInputs<T>& in_;
  const DeltaSpan& span_;
  int64_t head_, key_head_, ld_;
  T* y_;
  Scratch& scratch_;
};

}  // namespace

template <typename T>
void gated_delta(const StateShape& shape, const DeltaInputs<T>& inputs,
                 std::span<const DeltaSpan> spans, T* y, const ParallelFor& parallel) {
  const int64_t heads = shape.value_heads;
  WorkQueue queue(heads * static_cast<int64_t>(spans.size()));
  parallel(0, queue.count(), 1, [&](int64_t begin, int64_t end) {
    thread_local Scratch scratch;
    queue.work(begin, end, [&](int64_t i) {
      DeltaHead<T>(shape, inputs, spans[static_cast<size_t>(i / heads)], i % heads, y, scratch)
          .run();
    });
  });
}

#define VALORA_INSTANTIATE(T)                                                                     \
  template void gated_delta(const StateShape&, const DeltaInputs<T>&, std::span<const DeltaSpan>, \
                            T*, const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)

}  // namespace valora::kernels
