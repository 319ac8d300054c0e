#include "kernels/cpu/delta/short_conv.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/isa/clones.h"
#include "kernels/cpu/isa/vector_math.h"
#include "kernels/cpu/work_queue.h"

namespace valora::kernels {
namespace {

constexpr int64_t kPart = 512;  // channels per work item

// One output row of `count` channels. rows: `taps` input rows, oldest first; null: zeros.
template <typename T>
inline __attribute__((always_inline)) void convolve(const T* const* rows, const T* weights,
                                                    int64_t ldw, int64_t taps, int64_t count,
                                                    T* y) {
  float sum[kPart];
  for (int64_t c = 0; c < count; ++c) sum[c] = 0;
  for (int64_t j = 0; j < taps; ++j) {
    if (!rows[j]) continue;
    const T *x = rows[j], *w = weights + j * ldw;
    for (int64_t c = 0; c < count; ++c) sum[c] += to_float(x[c]) * to_float(w[c]);
  }
  for (int64_t c = 0; c < count; ++c) y[c] = from_float<T>(sum[c] / (1.0f + exp_approx(-sum[c])));
}

// target_clones does not work on templates, hence one thin function per type.
VALORA_CLONES void conv_row(const float* const* rows, const float* w, int64_t ldw, int64_t taps,
                            int64_t count, float* y) {
  convolve(rows, w, ldw, taps, count, y);
}
VALORA_CLONES void conv_row(const bf16* const* rows, const bf16* w, int64_t ldw, int64_t taps,
                            int64_t count, bf16* y) {
  convolve(rows, w, ldw, taps, count, y);
}

// Channels [first, first + count) of one span.
template <typename T>
class ConvPart {
 public:
  ConvPart(const T* x, int64_t ldx, const ConvWeights<T>& weights, const ConvSpan<T>& span,
           int64_t first, int64_t count)
      : x_(x), ldx_(ldx), weights_(weights), span_(span), first_(first), count_(count) {}

  void run(T* y, int64_t ldy) const {
    const int64_t taps = weights_.taps;
    const T* rows[kMostTaps];
    for (int64_t t = 0; t < span_.count; ++t) {
      for (int64_t j = 0; j < taps; ++j) rows[j] = input(t - taps + 1 + j);
      conv_row(rows, weights_.weights + first_, weights_.channels, taps, count_,
               y + (span_.begin + t) * ldy + first_);
    }
    for (const auto& kept : span_.kept)
      if (kept.to) keep(kept.to, kept.after);
    keep(span_.to, span_.count);
  }

 private:
  static constexpr int64_t kMostTaps = 16;

  // The input of the span's row t, or of the window if t is negative; null: zeros.
  const T* input(int64_t t) const {
    if (t >= 0) return x_ + (span_.begin + t) * ldx_ + first_;
    return span_.from ? span_.from[weights_.taps - 1 + t] + first_ : nullptr;
  }
  // Stores the window after `rows` rows. If it is updated in place, each row is read before it is
  // overwritten.
  void keep(T* const* window, int64_t rows) const {
    for (int64_t j = 0; j + 1 < weights_.taps; ++j) {
      const T* row = input(rows - weights_.taps + 1 + j);
      T* const to = window[j] + first_;
      if (row && row != to) std::memcpy(to, row, static_cast<size_t>(count_) * sizeof(T));
      if (!row) std::memset(to, 0, static_cast<size_t>(count_) * sizeof(T));
    }
  }

  const T* x_;
  int64_t ldx_;
  const ConvWeights<T>& weights_;
  const ConvSpan<T>& span_;
  int64_t first_, count_;
};

}  // namespace

template <typename T>
void short_conv(const T* x, int64_t ldx, const ConvWeights<T>& weights,
                std::span<const ConvSpan<T>> spans, T* y, int64_t ldy,
                const ParallelFor& parallel) {
  const int64_t parts = (weights.channels + kPart - 1) / kPart;
  WorkQueue queue(parts * static_cast<int64_t>(spans.size()));
  parallel(0, queue.count(), 1, [&](int64_t begin, int64_t end) {
    queue.work(begin, end, [&](int64_t i) {
      const int64_t first = i % parts * kPart;
      ConvPart<T>(x, ldx, weights, spans[static_cast<size_t>(i / parts)], first,
                  std::min(kPart, weights.channels - first))
          .run(y, ldy);
    });
  });
}

#define VALORA_INSTANTIATE(T)                                                                      \
  template void short_conv(const T*, int64_t, const ConvWeights<T>&, std::span<const ConvSpan<T>>, \
                           T*, int64_t, const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)

}  // namespace valora::kernels
