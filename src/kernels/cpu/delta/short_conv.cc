#include "kernels/cpu/delta/short_conv.h"

#include <algorithm>

#include "kernels/cpu/delta/row_lanes.h"
#include "kernels/cpu/isa/clones.h"

namespace valora::kernels {
namespace {

constexpr int64_t kVectors = 2;  // a strip of bf16 columns is one cache line
constexpr int64_t kStrip = kVectors * kLanes;
constexpr int64_t kAhead = 6;  // rows; the strided rows of a strip share few sets of the L1 cache

// Some columns, no more than a strip, starting at `column`. TAPS: 0 if only known at run time.
template <typename T, int TAPS, bool WHOLE>
class Strip {
 public:
  inline __attribute__((always_inline)) Strip(const ConvColumns<T>& c, int64_t column)
      : c_(c), column_(column), taps_(TAPS > 0 ? TAPS : c.taps) {
    for (int64_t v = 0; v < kVectors; ++v)
      counts_[v] = std::clamp<int64_t>(c.columns - column - v * kLanes, 0, kLanes);
    for (int64_t j = 0; j < taps_; ++j) load(c.weights + j * c.ldw + column, weights_[j]);
  }

  inline __attribute__((always_inline)) void run(int64_t first, int64_t rows, float* y,
                                                 int64_t ldy) {
    for (int64_t j = 1; j < taps_; ++j) load_before(first - taps_ + j, inputs_[j]);
    const T* row = c_.x + first * c_.ldx + column_;
    for (int64_t t = 0; t < rows; ++t, row += c_.ldx, y += ldy) {
      __builtin_prefetch(row + kAhead * c_.ldx);
      for (int64_t j = 0; j + 1 < taps_; ++j)
        for (int64_t v = 0; v < kVectors; ++v) inputs_[j][v] = inputs_[j + 1][v];
      load(row, inputs_[taps_ - 1]);
      for (int64_t v = 0; v < kVectors; ++v) {
        Lanes sum{};
        for (int64_t j = 0; j < taps_; ++j) sum += inputs_[j][v] * weights_[j][v];
        store_row<WHOLE>(y + column_ + v * kLanes, rounded<T>(silu_lanes(sum)), counts_[v]);
      }
    }
  }

 private:
  static constexpr int64_t kPlaces = TAPS > 0 ? TAPS : kMostTaps;
  using Vectors = Lanes[kVectors];

  inline __attribute__((always_inline)) void load(const T* p, Vectors& to) const {
    for (int64_t v = 0; v < kVectors; ++v) to[v] = load_row<WHOLE>(p + v * kLanes, counts_[v]);
  }
  // The span's row t, or the window's if t is negative.
  inline __attribute__((always_inline)) void load_before(int64_t t, Vectors& to) const {
    if (t >= 0)
      load(c_.x + t * c_.ldx + column_, to);
    else if (c_.window)
      load(c_.window[taps_ - 1 + t] + c_.place + column_, to);
    else
      for (int64_t v = 0; v < kVectors; ++v) to[v] = Lanes{};
  }

  const ConvColumns<T>& c_;
  int64_t column_, taps_;
  int64_t counts_[kVectors];
  Vectors weights_[kPlaces], inputs_[kPlaces];
};

template <typename T, int TAPS>
inline __attribute__((always_inline)) void convolve(const ConvColumns<T>& c, int64_t first,
                                                    int64_t rows, float* y, int64_t ldy) {
  int64_t column = 0;
  for (; column + kStrip <= c.columns; column += kStrip)
    Strip<T, TAPS, true>(c, column).run(first, rows, y, ldy);
  if (column < c.columns) Strip<T, TAPS, false>(c, column).run(first, rows, y, ldy);
}

}  // namespace

// target_clones does not work on templates.
VALORA_CLONES void short_conv(const ConvColumns<float>& c, int64_t first, int64_t rows, float* y,
                              int64_t ldy) {
  c.taps == 4 ? convolve<float, 4>(c, first, rows, y, ldy)
              : convolve<float, 0>(c, first, rows, y, ldy);
}
VALORA_CLONES void short_conv(const ConvColumns<bf16>& c, int64_t first, int64_t rows, float* y,
                              int64_t ldy) {
  c.taps == 4 ? convolve<bf16, 4>(c, first, rows, y, ldy)
              : convolve<bf16, 0>(c, first, rows, y, ldy);
}

}  // namespace valora::kernels
