#include "lab/ops/limits.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>

#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/product/byte_product.h"
#include "kernels/cpu/product/product.h"
#include "lab/ops/bandwidth_loop.h"
#include "lab/ops/timing.h"
#include "ops/device/cpu_types.h"
#include "ops/device/huge_memory.h"
#include "ops/device/parallel.h"

namespace valora::bench {
namespace {

constexpr int64_t kArrayBytes = int64_t{256} << 20;
constexpr auto kStale = std::chrono::seconds(1);

// Each thread multiplies its own small matrices repeatedly.
template <typename T>
double product_rate(at::ScalarType dtype, kernels::CpuTile tile) {
  constexpr int64_t kRows = 48, kInputs = 512, kOutputs = 128, kRepeats = 20;
  const int threads = at::get_num_threads();
  const at::Tensor x = at::full({threads, kRows, kInputs}, 0.5, dtype);
  const at::Tensor w =
      at::full({threads, kernels::packed_elements<T>(kOutputs, kInputs)}, 0.5, dtype);
  const at::Tensor y = at::zeros({threads, kRows, kOutputs}, at::kFloat);
  const auto multiply = [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      kernels::Product<T> p;
      p.x = ops::raw<T>(x) + t * kRows * kInputs;
      p.m = kRows;
      p.ldx = kInputs;
      p.w = {ops::raw<T>(w) + t * w.stride(0), kOutputs, kInputs};
      p.panel_end = kernels::panels_of(kOutputs);
      p.epilogue = kernels::Epilogue::kStoreFloat;
      p.y = y.mutable_data_ptr<float>() + t * kRows * kOutputs;
      p.ldy = kOutputs;
      p.tile = tile;
      for (int64_t i = 0; i < kRepeats; ++i) kernels::kernel_set<T>().multiply(p);
    }
  };
  const double seconds = fastest([&] { ops::torch_parallel()(0, threads, 1, multiply); }, 5);
  return 2.0 * kRows * kInputs * kOutputs * kRepeats * threads / seconds;
}

template <typename T>
double best_product_rate(at::ScalarType dtype) {
  double best = 0;
  for (const kernels::CpuTile tile : {kernels::CpuTile{6, 4, 1}, kernels::CpuTile{12, 2, 1},
                                      kernels::CpuTile{8, 3, 1}, kernels::CpuTile{3, 8, 1}})
    best = std::max(best, product_rate<T>(dtype, tile));
  return best;
}

// The same with integers: 4 or 8 bits, groups of `group` inputs.
double byte_product_rate(int bits, int64_t group) {
  constexpr int64_t kRows = 60, kInputs = 512, kOutputs = 128, kRepeats = 20;
  const int threads = at::get_num_threads();
  kernels::IntegerPanels w = kernels::integer_layout(kOutputs, kInputs, bits, group, false, false);
  w.input_block = group;
  const at::Tensor panels = at::zeros({threads, kernels::integer_bytes(w)}, at::kByte),
                   x = at::ones({kRows, kInputs}, at::kFloat),
                   y = at::zeros({threads, kRows, kOutputs}, at::kFloat);
  const kernels::ByteForm form = kernels::byte_form(w, kernels::byte_kernels());
  const at::Tensor values = at::empty({kRows, form.row_bytes()}, at::kByte),
                   scales = at::empty({kRows, form.spans()}, at::kFloat),
                   sums = at::empty_like(scales), starts = at::empty_like(scales, at::kInt);
  kernels::round_rows_to_bytes(
      x.const_data_ptr<float>(), kRows, kInputs, form,
      {values.mutable_data_ptr<uint8_t>(), scales.mutable_data_ptr<float>(),
       sums.mutable_data_ptr<float>(), starts.mutable_data_ptr<int32_t>()});
  const auto multiply = [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      kernels::ByteProduct p;
      p.w = w;
      p.w.data = panels.const_data_ptr<uint8_t>() + t * panels.stride(0);
      p.m = kRows;
      p.panel_end = kernels::panels_of(kOutputs);
      p.y = y.mutable_data_ptr<float>() + t * kRows * kOutputs;
      p.ldy = kOutputs;
      p.rows = {values.const_data_ptr<uint8_t>(),
                form.row_bytes(),
                scales.const_data_ptr<float>(),
                sums.const_data_ptr<float>(),
                starts.const_data_ptr<int32_t>(),
                form.spans(),
                form.span,
                form.block_spans()};
      for (int64_t i = 0; i < kRepeats; ++i) kernels::byte_kernels().multiply(p);
    }
  };
  const double seconds = fastest([&] { ops::torch_parallel()(0, threads, 1, multiply); }, 5);
  return 2.0 * kRows * kInputs * kOutputs * kRepeats * threads / seconds;
}

}  // namespace

Limits::Limits() : array_(ops::huge_zeros(kArrayBytes / 4, at::kFloat)) {
  array_.fill_(1);  // otherwise unwritten pages all map to one zero page
  measure_arithmetic();
  measure_bandwidth();
}

void Limits::refresh() {
  if (std::chrono::steady_clock::now() - measured_ <= kStale) return;
  measure_arithmetic();
  measure_bandwidth();
}

void Limits::measure_arithmetic() {
  const std::array rates{best_product_rate<kernels::bf16>(at::kBFloat16),
                         best_product_rate<float>(at::kFloat), byte_product_rate(8, 512),
                         byte_product_rate(4, 512)};
  for (size_t i = 0; i < rates.size(); ++i) arithmetic_[i] = std::max(arithmetic_[i], rates[i]);
}

void Limits::measure_bandwidth() {
  constexpr int64_t kPiece = int64_t{1} << 18;
  const float* values = array_.const_data_ptr<float>();
  std::atomic<int64_t> wrong = 0;
  const auto pass = [&] {
    ops::torch_parallel()(0, array_.numel() / kPiece, 1, [&](int64_t begin, int64_t end) {
      const int64_t count = (end - begin) * kPiece;
      if (sum_floats(values + begin * kPiece, count) != static_cast<float>(count)) ++wrong;
    });
  };
  bandwidth_ = static_cast<double>(kArrayBytes) / fastest(pass, 4);
  TORCH_CHECK(wrong == 0, "the array's sum is wrong");
  lowest_ = lowest_ == 0 ? bandwidth_ : std::min(lowest_, bandwidth_);
  highest_ = std::max(highest_, bandwidth_);
  measured_ = std::chrono::steady_clock::now();
}

// Prefers /sys: sysconf includes cache slices that other cores own.
int64_t last_level_cache() {
  static const int64_t bytes = [] {
    int64_t largest = 0;
    for (int level = 0; level < 8; ++level) {
      std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(level) +
                         "/size");
      int64_t size = 0;
      char unit = 0;
      if (file >> size)
        largest = std::max(largest, size << (file >> unit && unit == 'M' ? 20
                                             : unit == 'K'               ? 10
                                                                         : 0));
    }
    if (largest == 0)
      largest = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
    return largest > 0 ? largest : int64_t{32} << 20;
  }();
  return bytes;
}

int64_t cold_copies(int64_t bytes) {
  return 1 + 2 * last_level_cache() / std::max<int64_t>(1, bytes);
}

}  // namespace valora::bench
