#include "kernels/cpu/delta/gated_delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/delta/delta_rule.h"
#include "kernels/cpu/delta/row_lanes.h"
#include "kernels/cpu/delta/short_conv.h"
#include "kernels/cpu/isa/clones.h"
#include "kernels/cpu/work_queue.h"

namespace valora::kernels {
namespace {

constexpr int64_t kRows = 64;      // rows of a span whose keys and queries are prepared together
constexpr float kNormEps = 1e-6f;  // when normalising queries and keys

// Σ x²
inline __attribute__((always_inline)) float squares(const float* x, int64_t n) {
  Lanes sum{};
  each_vector(n, [&](int64_t i, int64_t count, auto whole) __attribute__((always_inline)) {
    const Lanes part = load_row<whole.value>(x + i, count);
    sum += part * part;
  });
  return sum_lanes(sum);
}

// x ← x / √(Σ x² + eps) · scale, for each row.
VALORA_CLONES void to_length(float* x, int64_t rows, int64_t n, float scale) {
  for (int64_t t = 0; t < rows; ++t, x += n) {
    const float factor = scale / std::sqrt(squares(x, n) + kNormEps);
    each_vector(n, [&](int64_t i, int64_t count, auto whole) __attribute__((always_inline)) {
      store_row<whole.value>(x + i, load_row<whole.value>(x + i, count) * factor, count);
    });
  }
}

// Rows of a head with their gates and outputs, and row strides.
template <typename T>
struct NormRows {
  int64_t rows = 0, n = 0;
  const float* x = nullptr;
  int64_t ldx = 0;
  const T* weight = nullptr;
  const T* z = nullptr;
  int64_t ldz = 0;
  float eps = 0;
  T* y = nullptr;
  int64_t ldy = 0;
};

// x / √(mean(x²) + eps) · weight · silu(z)
template <typename T>
inline __attribute__((always_inline)) void gated_norm(const NormRows<T>& r) {
  for (int64_t t = 0; t < r.rows; ++t) {
    const float *const x = r.x + t * r.ldx,
                       scale = 1.0f / std::sqrt(squares(x, r.n) / static_cast<float>(r.n) + r.eps);
    const T* const z = r.z + t * r.ldz;
    T* const y = r.y + t * r.ldy;
    each_vector(r.n, [&](int64_t i, int64_t count, auto whole) __attribute__((always_inline)) {
      constexpr bool kWhole = decltype(whole)::value;
      const Lanes normed = load_row<kWhole>(x + i, count) * scale;
      store_row<kWhole>(y + i,
                        normed * load_row<kWhole>(r.weight + i, count) *
                            silu_lanes(load_row<kWhole>(z + i, count)),
                        count);
    });
  }
}
// The rows of a head are too far apart for the CPU to prefetch them itself.
template <typename T>
void prefetch(const NormRows<T>& r, int64_t t) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < r.n; i += kLine) {
    __builtin_prefetch(r.z + t * r.ldz + i, 0, 2);
    __builtin_prefetch(r.y + t * r.ldy + i, 1, 2);
  }
}
// target_clones does not work on templates.
VALORA_CLONES void norm_rows(const NormRows<float>& rows) { gated_norm(rows); }
VALORA_CLONES void norm_rows(const NormRows<bf16>& rows) { gated_norm(rows); }

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

// A thread's scratch memory for the rows of a head.
struct Scratch {
  std::vector<float> keys, queries, decays, rates, values, outputs;
};

// A key head of one span with its value heads.
template <typename T>
class DeltaHeads {
 public:
  DeltaHeads(const StateShape& shape, const DeltaInputs<T>& inputs, const DeltaSpan<T>& span,
             int64_t key_head, T* y, Scratch& scratch)
      : shape_(shape),
        in_(inputs),
        span_(span),
        key_head_(key_head),
        heads_(shape.value_heads / shape.key_heads),
        ld_((shape.value_dim + kStateTile - 1) / kStateTile * kStateTile),
        y_(y),
        scratch_(scratch) {
    scratch.keys.resize(static_cast<size_t>(kRows * shape.key_dim));
    scratch.queries.resize(scratch.keys.size());
    scratch.decays.resize(kRows);
    scratch.rates.resize(kRows);
    scratch.values.resize(static_cast<size_t>(kRows * ld_));
    if (ld_ > shape.value_dim) std::ranges::fill(scratch.values, 0.0f);  // behind value_dim
    scratch.outputs.resize(scratch.values.size());
  }

  void run() {
    each_head([&](int64_t head) {
      float* const state = span_.to.heads[head];
      const float* const from = span_.from ? span_.from.heads[head] : nullptr;
      if (!from)
        std::memset(state, 0, matrix_bytes());
      else if (from != state)
        std::memcpy(state, from, matrix_bytes());
    });
    int64_t done = 0;
    for (const auto& kept : span_.kept) {
      if (!kept.to) continue;
      run_rows(done, kept.after);
      each_head([&](int64_t head) {
        std::memcpy(kept.to.heads[head], span_.to.heads[head], matrix_bytes());
      });
      keep_window(kept.to.window, kept.after);
      done = kept.after;
    }
    run_rows(done, span_.count);
    keep_window(span_.to.window, span_.count);
  }

 private:
  // Columns of the convolution.
  struct Columns {
    int64_t begin = 0, count = 0;
  };
  Columns queries() const { return {key_head_ * shape_.key_dim, shape_.key_dim}; }
  Columns keys() const { return {(shape_.key_heads + key_head_) * shape_.key_dim, shape_.key_dim}; }
  Columns values(int64_t head, int64_t heads) const {
    return {2 * shape_.key_heads * shape_.key_dim + head * shape_.value_dim,
            heads * shape_.value_dim};
  }

  template <typename Body>
  void each_head(const Body& body) const {
    for (int64_t i = 0; i < heads_; ++i) body(key_head_ * heads_ + i);
  }
  size_t matrix_bytes() const { return static_cast<size_t>(head_floats(shape_)) * sizeof(float); }

  // Rows [begin, end) of the span.
  void run_rows(int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kRows)
      run_some(first, std::min(kRows, end - first));
  }

  void run_some(int64_t first, int64_t rows) {
    const int64_t dim = shape_.key_dim;
    convolve(queries(), first, rows, scratch_.queries.data(), dim);
    to_length(scratch_.queries.data(), rows, dim, 1.0f / std::sqrt(static_cast<float>(dim)));
    convolve(keys(), first, rows, scratch_.keys.data(), dim);
    to_length(scratch_.keys.data(), rows, dim, 1);
    each_head([&](int64_t head) { run_head(head, first, rows); });
  }

  void run_head(int64_t head, int64_t first, int64_t rows) {
    const int64_t width = shape_.value_heads * shape_.value_dim, place = head * shape_.value_dim,
                  row = span_.begin + first;
    const NormRows<T> norm{rows,     shape_.value_dim, scratch_.outputs.data(),
                           ld_,      in_.weight,       in_.z + row * in_.ld_z + place,
                           in_.ld_z, in_.eps,          y_ + row * width + place,
                           width};
    convolve(values(head, 1), first, rows, scratch_.values.data(), ld_);
    for (int64_t t = 0; t < rows; ++t) {
      prefetch(norm, t);  // here one by one: the CPU drops those that exceed its queues
      find_rates(head, first, t);
    }
    const HeadRows of_head{rows,
                           shape_.key_dim,
                           ld_,
                           scratch_.keys.data(),
                           scratch_.queries.data(),
                           scratch_.decays.data(),
                           scratch_.rates.data(),
                           scratch_.values.data(),
                           scratch_.outputs.data()};
    for (int64_t column = 0; column < ld_; column += kStateTile)
      run_tile(of_head, column, span_.to.heads[head] + column * shape_.key_dim);
    norm_rows(norm);
  }

  void convolve(const Columns& columns, int64_t first, int64_t rows, float* y, int64_t ldy) const {
    const ConvColumns<T> c{in_.qkv + span_.begin * in_.ld_qkv + columns.begin,
                           in_.ld_qkv,
                           in_.conv + columns.begin,
                           shape_.channels,
                           shape_.taps,
                           span_.from.window,
                           columns.begin,
                           columns.count};
    short_conv(c, first, rows, y, ldy);
  }

  void find_rates(int64_t head, int64_t first, int64_t t) {
    const int64_t row = span_.begin + first + t;
    const float a = to_float(in_.a[row * in_.ld_a + head]),
                b = to_float(in_.b[row * in_.ld_b + head]);
    scratch_.decays[static_cast<size_t>(t)] =
        std::exp(-in_.rate[head] * softplus(a + in_.bias[head]));
    scratch_.rates[static_cast<size_t>(t)] = 1.0f / (1.0f + std::exp(-b));
  }

  // Stores these heads' columns of the window after `rows` rows. If it is updated in place, each
  // row is read before it is overwritten.
  void keep_window(T* const* window, int64_t rows) const {
    for (const Columns& part : {queries(), keys(), values(key_head_ * heads_, heads_)}) {
      const size_t bytes = static_cast<size_t>(part.count) * sizeof(T);
      for (int64_t j = 0; j + 1 < shape_.taps; ++j) {
        const int64_t t = rows - shape_.taps + 1 + j;
        T* const to = window[j] + part.begin;
        const T* from = nullptr;
        if (t >= 0)
          from = in_.qkv + (span_.begin + t) * in_.ld_qkv + part.begin;
        else if (span_.from)
          from = span_.from.window[shape_.taps - 1 + t] + part.begin;
        if (!from)
          std::memset(to, 0, bytes);
        else if (from != to)
          std::memcpy(to, from, bytes);
      }
    }
  }

  const StateShape& shape_;
  const DeltaInputs<T>& in_;
  const DeltaSpan<T>& span_;
  int64_t key_head_, heads_, ld_;
  T* y_;
  Scratch& scratch_;
};

}  // namespace

template <typename T>
void gated_delta(const StateShape& shape, const DeltaInputs<T>& inputs,
                 std::span<const DeltaSpan<T>> spans, T* y, const ParallelFor& parallel) {
  WorkQueue queue(shape.key_heads * static_cast<int64_t>(spans.size()));
  parallel(0, queue.count(), 1, [&](int64_t begin, int64_t end) {
    thread_local Scratch scratch;
    queue.work(begin, end, [&](int64_t i) {
      DeltaHeads<T>(shape, inputs, spans[static_cast<size_t>(i / shape.key_heads)],
                    i % shape.key_heads, y, scratch)
          .run();
    });
  });
}

#define VALORA_INSTANTIATE(T)                                         \
  template void gated_delta(const StateShape&, const DeltaInputs<T>&, \
                            std::span<const DeltaSpan<T>>, T*, const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)

#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
