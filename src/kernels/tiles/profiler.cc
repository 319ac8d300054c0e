#include "kernels/tiles/profiler.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/linear/partition.h"
#include "kernels/cpu/linear/project.h"
#include "kernels/cpu/product/product.h"
#include "kernels/tiles/choose.h"

namespace valora::kernels {
namespace {

// A dense measurement uses at most this many bytes of weights and multiply-adds, but at least
// kDensePanels panels. Using more would not change the time per output.
constexpr int64_t kDenseBytes = 6 << 20;
constexpr int64_t kDenseProducts = 1 << 29;
constexpr int64_t kDensePanels = 16;
constexpr double kMeasured = 60e-6;  // approximate minimum duration of a measurement, in seconds
constexpr int64_t kMostRepeats = 256;
// Bytes of an expand's panels that a projection prefetches into L2.
constexpr int64_t kFetchedBytes = 256 << 10;
// Panels in the dense product's tile, to whose sums an expand adds.
constexpr int64_t kDenseGroup = 4;

// The number of outputs to measure.
template <typename T>
int64_t measured_outputs(const ProductShape& s) {
  const int64_t row = std::max<int64_t>(1, s.k);
  if (s.kind == ProductKind::kShrink || (s.kind == ProductKind::kExpand && s.m > kFetchedRows))
    return s.n;
  if (s.kind == ProductKind::kExpand)
    return std::min(
        s.n, std::max<int64_t>(
                 1, kFetchedBytes / (row * static_cast<int64_t>(sizeof(T)) * kPanelOutputs)) *
                 kPanelOutputs);
  const int64_t by_bytes = kDenseBytes / (row * static_cast<int64_t>(sizeof(T))),
                by_products = kDenseProducts / (row * std::max<int64_t>(1, s.m));
  const int64_t most = std::max(kDensePanels, std::min(by_bytes, by_products) / kPanelOutputs);
  return std::min(s.n, most * kPanelOutputs);
}

int64_t repeats(int64_t m, int64_t n, int64_t k, size_t element) {
  const double products =
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / 150e9;
  const double bytes =
      static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(element) / 30e9;
  return std::clamp<int64_t>(static_cast<int64_t>(kMeasured / std::max(products, bytes)), 1,
                             kMostRepeats);
}

}  // namespace

class TileProfiler::Memory {
 public:
  explicit Memory(size_t cold_bytes) : bytes_(cold_bytes) {}

  // Weights that are not in any cache.
  template <typename T>
  Panels<T> cold(int64_t n, int64_t k) {
    const size_t count = static_cast<size_t>(packed_elements<T>(n, k));
    if (weights_.size() < std::max(bytes_, count * sizeof(T)) || of_floats_ != (sizeof(T) == 4))
      fill<T>(count);
    if ((at_ + count) * sizeof(T) > weights_.size()) at_ = 0;
    const T* data = reinterpret_cast<const T*>(weights_.data()) + at_;
    at_ += count;
    return {data, n, k, nullptr, 0};
  }
  template <typename T>
  const T* inputs(int64_t count) {
    const bool other = inputs_.resize(static_cast<size_t>(count) * sizeof(T)) ||
                       inputs_of_floats_ != (sizeof(T) == 4);
    if (other) set(reinterpret_cast<T*>(inputs_.data()), inputs_.size() / sizeof(T));
    inputs_of_floats_ = sizeof(T) == 4;
    return reinterpret_cast<const T*>(inputs_.data());
  }
  char* outputs(int64_t bytes) {
    outputs_.resize(static_cast<size_t>(bytes));
    return outputs_.data();
  }

 private:
  // Sets normal numbers, because NaN and subnormal operands may be slower.
  template <typename T>
  static void set(T* values, size_t count) {
    for (size_t i = 0; i < count; ++i)
      values[i] = from_float<T>(static_cast<float>(i % 61) * 0.01f - 0.3f);
  }
  template <typename T>
  void fill(size_t count) {
    weights_.resize(std::max(bytes_, count * sizeof(T)));
    set(reinterpret_cast<T*>(weights_.data()), weights_.size() / sizeof(T));
    of_floats_ = sizeof(T) == 4;
    at_ = 0;
  }
  // Memory on huge pages if the system has them, like an engine's weights.
  class Bytes {
   public:
    size_t size() const { return size_; }
    char* data() const { return data_.get(); }
    // Grows only. Returns true if it grew.
    bool resize(size_t bytes) {
      if (bytes <= size_) return false;
      size_ = (bytes + kPage - 1) / kPage * kPage;
      data_.reset(static_cast<char*>(std::aligned_alloc(kPage, size_)));
      if (!data_) throw std::bad_alloc();
      ::madvise(data_.get(), size_, MADV_HUGEPAGE);
      std::memset(data_.get(), 0, size_);
      return true;
    }

   private:
    static constexpr size_t kPage = size_t{2} << 20;
    struct Free {
      void operator()(char* data) const { std::free(data); }
    };
    std::unique_ptr<char, Free> data_;
    size_t size_ = 0;
  };
  size_t bytes_, at_ = 0;
  bool of_floats_ = false, inputs_of_floats_ = false;
  Bytes weights_, inputs_, outputs_;
};

TileProfiler::TileProfiler(const Clock& clock, ParallelFor parallel, size_t cold_bytes)
    : clock_(clock),
      parallel_(std::move(parallel)),
      memory_(std::make_unique<Memory>(cold_bytes)) {}
TileProfiler::~TileProfiler() = default;

template <typename T>
double TileProfiler::measure(const ProductShape& s, const CpuTile& tile, bool cold) {
  const bool dense = s.kind == ProductKind::kDense;
  const int64_t n = measured_outputs<T>(s), panels = panels_of(n),
                unit = std::min(panels, piece_panels(panels_of(s.n), kDenseGroup));
  const bool fetched = s.m <= kFetchedRows;
  const T* x = memory_->inputs<T>(s.m * s.k);
  void* y = memory_->outputs(s.m * panels * kPanelOutputs * static_cast<int64_t>(sizeof(float)));
  Panels<T> w, next = memory_->cold<T>(n, s.k);
  const T* fetch[kMaxFetchedPanels];
  const auto once = [&] {
    w = next;
    if (cold && (s.kind != ProductKind::kExpand || !fetched)) next = memory_->cold<T>(n, s.k);
    if (dense) {
      const Slice<T> slice{w, nullptr, static_cast<T*>(y), nullptr, n};
      return project<T>(x, s.m, s.k, {&slice, 1}, {}, std::nullopt, parallel_);
    }
    Product<T> p{
        .x = x, .m = s.m, .ldx = s.k, .w = w, .panel_end = panels, .y = y, .ldy = n, .tile = tile};
    if (s.kind == ProductKind::kShrink) {
      for (int64_t i = 0; i < std::min(panels, kMaxFetchedPanels); ++i) fetch[i] = next.panel(i);
      if (fetched && panels <= kMaxFetchedPanels) p.fetch = fetch;
      return kernel_set<T>().multiply(p);
    }
    // Computed in pieces and added to sums in cache, as in a projection.
    p.epilogue = Epilogue::kAddFloat;
    p.ldy = unit * kPanelOutputs;
    for (int64_t panel = 0; panel < panels; panel += unit) {
      p.panel_begin = panel;
      p.panel_end = std::min(panels, panel + unit);
      p.first_output = panel * kPanelOutputs;
      kernel_set<T>().multiply(p);
    }
  };
  const int64_t count = repeats(s.m, n, s.k, sizeof(T));
  if (s.kind == ProductKind::kExpand && fetched) once();
  const TimePoint start = clock_.now();
  for (int64_t i = 0; i < count; ++i) once();
  return valora::seconds(clock_.now() - start) / static_cast<double>(count);
}

double TileProfiler::seconds(const ProductShape& shape, const CpuTile& tile) {
  const Isa isa_before = isa();
  const auto tiles_before = tiles_in_use();
  set_isa(shape.processor.isa());
  use_tiles(std::make_shared<const TileTable>(TileTable::single(tile)));
  const auto seconds = [&](bool cold) {
    return shape.float32 ? measure<float>(shape, tile, cold) : measure<bf16>(shape, tile, cold);
  };
  // Dense weights come from memory. Adapters may still be in cache, so their tile must suit both
  // cases.
  const double result =
      shape.kind == ProductKind::kDense ? seconds(true) : std::sqrt(seconds(true) * seconds(false));
  use_tiles(tiles_before);
  set_isa(isa_before);
  return result;
}

}  // namespace valora::kernels
