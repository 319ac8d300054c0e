// PIL's 8-bit resampling, bit for bit: a horizontal and then a vertical pass of weighted sums in
// 22-bit fixed point, each rounded and clipped to a byte. A pass that would not change the size is
// skipped. Since Pillow 13, the vertical pass comes first if it removes many rows.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/sanitizer.h"
#include "media/image/image.h"

// Compiled for AVX2 and for the baseline, chosen at program start. Not under sanitizers, which are
// not yet initialised when the choice is made.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(VALORA_UNDER_SANITIZER)
#define VALORA_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define VALORA_VECTOR_CLONES
#endif

namespace valora::media {
namespace {

constexpr int kPrecisionBits = 32 - 8 - 2;

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

struct Kernel {
  double support;
  double (*weight)(double x);
};

Kernel kernel_of(Resample filter) {
  switch (filter) {
    case Resample::kLanczos: return {3.0, lanczos};
    case Resample::kBilinear: return {1.0, triangle};
    case Resample::kBicubic: break;
  }
  return {2.0, bicubic};
}

// The input positions [first, first + count) of one output position, with their weights.
struct Window {
  int first;
  int count;
  const int32_t* weights;
};

class Windows {
 public:
  Windows(int in_size, int out_size, const Kernel& kernel) {
    const double scale = double(in_size) / out_size;
    const double filter_scale = std::max(scale, 1.0);
    const double support = kernel.support * filter_scale;
    const double inverse = 1.0 / filter_scale;
    stride_ = static_cast<int>(std::ceil(support)) * 2 + 1;
    bounds_.resize(out_size);
    weights_.resize(size_t(out_size) * stride_);
    std::vector<double> exact(stride_);
    for (int i = 0; i < out_size; ++i) {
      const double centre = (i + 0.5) * scale;
      const int first = std::max(static_cast<int>(centre - support + 0.5), 0);
      const int count = std::min(static_cast<int>(centre + support + 0.5), in_size) - first;
      double sum = 0.0;
      for (int k = 0; k < count; ++k)
        sum += exact[k] = kernel.weight((k + first - centre + 0.5) * inverse);
      for (int k = 0; k < count; ++k) {
        const double weight = sum != 0.0 ? exact[k] / sum : exact[k];
        weights_[size_t(i) * stride_ + k] =
            static_cast<int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kPrecisionBits));
      }
      bounds_[i] = {first, count};
    }
  }

  Window operator[](int i) const {
    return {bounds_[i].first, bounds_[i].second, &weights_[size_t(i) * stride_]};
  }

 private:
  int stride_ = 0;
  std::vector<std::pair<int, int>> bounds_;
  std::vector<int32_t> weights_;
};

inline uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

// out[lane] = the weighted sum over k of in[k * stride + lane]. Lanes are adjacent so that the
// compiler can vectorise.
template <int kLanes>
inline void weighted_sum(const uint8_t* in, size_t stride, Window window, uint8_t* out) {
  int32_t sums[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) sums[lane] = 1 << (kPrecisionBits - 1);
  for (int k = 0; k < window.count; ++k, in += stride)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += in[lane] * window.weights[k];
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = to_byte(sums[lane]);
}

constexpr int kBlockRows = 8;
constexpr int kBlockLanes = kBlockRows * 3;

// Processes eight rows at a time, interleaved so that one position's 24 bytes are adjacent. The
// last block overlaps finished rows.
VALORA_VECTOR_CLONES void resize_rows(const uint8_t* in, int height, int in_width, uint8_t* out,
                                      int out_width, const Windows& windows, uint8_t* block) {
  uint8_t sums[kBlockLanes];
  for (int top = 0; top < height; top += kBlockRows) {
    const int rows = std::min(kBlockRows, height - top);
    for (int row = 0; row < kBlockRows; ++row) {
      const uint8_t* from = in + size_t(top + std::min(row, rows - 1)) * in_width * 3;
      for (int x = 0; x < in_width; ++x)
        for (int c = 0; c < 3; ++c) block[size_t(x) * kBlockLanes + row * 3 + c] = from[x * 3 + c];
    }
    for (int x = 0; x < out_width; ++x) {
      const Window window = windows[x];
      weighted_sum<kBlockLanes>(block + size_t(window.first) * kBlockLanes, kBlockLanes, window,
                                sums);
      for (int row = 0; row < rows; ++row)
        for (int c = 0; c < 3; ++c)
          out[(size_t(top + row) * out_width + x) * 3 + c] = sums[row * 3 + c];
    }
  }
}

VALORA_VECTOR_CLONES void resize_columns(const uint8_t* in, size_t row_bytes, uint8_t* out,
                                         int out_height, const Windows& windows) {
  constexpr size_t kLanes = 32;
  for (int y = 0; y < out_height; ++y) {
    const Window window = windows[y];
    const uint8_t* from = in + size_t(window.first) * row_bytes;
    uint8_t* to = out + size_t(y) * row_bytes;
    size_t at = 0;
    for (; at + kLanes <= row_bytes; at += kLanes)
      weighted_sum<kLanes>(from + at, row_bytes, window, to + at);
    for (; at < row_bytes; ++at) weighted_sum<1>(from + at, row_bytes, window, to + at);
  }
}

Image resize_horizontally(const Image& image, int width, const Kernel& kernel) {
  Image out{width, image.height, std::vector<uint8_t>(size_t(width) * image.height * 3)};
  std::vector<uint8_t> block(size_t(image.width) * kBlockLanes);
  resize_rows(image.rgb.data(), image.height, image.width, out.rgb.data(), width,
              Windows(image.width, width, kernel), block.data());
  return out;
}

Image resize_vertically(const Image& image, int height, const Kernel& kernel) {
  Image out{image.width, height, std::vector<uint8_t>(size_t(image.width) * height * 3)};
  resize_columns(image.rgb.data(), size_t(image.width) * 3, out.rgb.data(), height,
                 Windows(image.height, height, kernel));
  return out;
}

// The same rule as in Pillow.
bool vertical_first(const Image& image, int width, int height) {
  const int64_t rows = int64_t{image.height} - height, columns = int64_t{image.width} - width;
  return rows > 0 && rows > 2 * columns;
}

}  // namespace

Image resize_image(const Image& image, int width, int height, Resample filter) {
  const Kernel kernel = kernel_of(filter);
  if (width == image.width && height == image.height) return image;
  if (width == image.width) return resize_vertically(image, height, kernel);
  if (height == image.height) return resize_horizontally(image, width, kernel);
  if (vertical_first(image, width, height))
    return resize_horizontally(resize_vertically(image, height, kernel), width, kernel);
  return resize_vertically(resize_horizontally(image, width, kernel), height, kernel);
}

}  // namespace valora::media
