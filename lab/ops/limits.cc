#include "lab/ops/limits.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <utility>

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

// A run of a product loop takes some milliseconds, much longer than starting the threads.
constexpr int64_t kInputs = 1024, kOutputs = 64, kRepeats = 20;

double rate_of(const LimitLoop& loop) { return loop.work / fastest(loop.run, 5); }

LimitLoop on_all_threads(int64_t rows, std::function<void(int64_t thread)> multiply) {
  const int threads = at::get_num_threads();
  return {[=, multiply = std::move(multiply)] {
            ops::torch_parallel()(0, threads, 1, [&](int64_t begin, int64_t end) {
              for (int64_t t = begin; t < end; ++t) multiply(t);
            });
          },
          2.0 * static_cast<double>(rows * kInputs * kOutputs * kRepeats * threads)};
}

// Each thread multiplies its own small matrices repeatedly.
template <typename T>
LimitLoop product_loop_of(at::ScalarType dtype, kernels::CpuTile tile) {
  constexpr int64_t kRows = 48;
  const int threads = at::get_num_threads();
  const at::Tensor x = at::full({threads, kRows, kInputs}, 0.5, dtype);
  const at::Tensor w =
      at::full({threads, kernels::packed_elements<T>(kOutputs, kInputs)}, 0.5, dtype);
  const at::Tensor y = at::zeros({threads, kRows, kOutputs}, at::kFloat);
  return on_all_threads(kRows, [=](int64_t t) {
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
  });
}

template <typename T>
LimitLoop best_product_loop(at::ScalarType dtype) {
  LimitLoop best;
  double most = 0;
  for (const kernels::CpuTile tile : {kernels::CpuTile{6, 4, 1}, kernels::CpuTile{12, 2, 1},
                                      kernels::CpuTile{8, 3, 1}, kernels::CpuTile{3, 8, 1}}) {
    LimitLoop loop = product_loop_of<T>(dtype, tile);
    const double rate = rate_of(loop);
    if (rate > most) best = std::move(loop), most = rate;
  }
  return best;
}

// The same with integers of 4 or 8 bits.
LimitLoop byte_product_loop(int bits) {
  constexpr int64_t kRows = 60;
  const int threads = at::get_num_threads();
  kernels::IntegerPanels w =
      kernels::integer_layout(kOutputs, kInputs, bits, kInputs, false, false);
  w.input_block = kInputs;
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
  return on_all_threads(kRows, [=](int64_t t) {
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
  });
}

// Each run reads the next part of an array that the caches cannot hold.
LimitLoop memory_loop() {
  constexpr int64_t kElements = int64_t{64} << 20, kRead = kElements / 8, kPiece = kRead / 128;
  const at::Tensor array = ops::huge_zeros(kElements, at::kFloat);
  array.fill_(1);  // otherwise unwritten pages all map to one zero page
  return {[array, next = int64_t{0}]() mutable {
            const float* values = array.const_data_ptr<float>() + next;
            next = (next + kRead) % kElements;
            std::atomic<int64_t> wrong = 0;
            ops::torch_parallel()(0, kRead / kPiece, 1, [&](int64_t begin, int64_t end) {
              const int64_t count = (end - begin) * kPiece;
              if (sum_floats(values + begin * kPiece, count) != static_cast<float>(count)) ++wrong;
            });
            TORCH_CHECK(wrong == 0, "the array's sum is wrong");
          },
          4.0 * kRead};
}

}  // namespace

Limits::Limits()
    : memory_(memory_loop()),
      products_{best_product_loop<kernels::bf16>(at::kBFloat16),
                best_product_loop<float>(at::kFloat), byte_product_loop(8), byte_product_loop(4)},
      bandwidth_(rate_of(memory_)) {
  for (size_t i = 0; i < products_.size(); ++i) arithmetic_[i] = rate_of(products_[i]);
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
