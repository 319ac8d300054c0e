#include "tuning/machine_speed.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

#include "kernels/cpu/isa/isa.h"
#include "ops/device/huge_memory.h"
#include "ops/linear/linear.h"

namespace valora::tuning {
namespace {

constexpr int64_t kArrayBytes = int64_t{256} << 20;  // more than most caches
constexpr int64_t kPromptRows = 256;

// The time of the fastest of the passes within so many seconds; at least two.
double fastest_pass(double seconds, const std::function<void()>& pass) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 2 || Clock::now() < end; ++i) {
    const auto start = Clock::now();
    pass();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

double fastest_read(double seconds) {
  const at::Tensor array = ops::huge_zeros(kArrayBytes / 4, at::kFloat);
  array.fill_(1);  // otherwise unwritten pages all map to one zero page
  at::Tensor sum = at::zeros({}, at::kFloat);
  return fastest_pass(seconds, [&] { at::sum_out(sum, array, {0}); });
}

}  // namespace

MachineSpeed measure_speed(double seconds) {
  const c10::InferenceMode no_gradients;
  const bool bf16 =
      kernels::isa() == kernels::Isa::kAmx || kernels::isa() == kernels::Isa::kAvx512Bf16;
  const at::ScalarType dtype = bf16 ? at::kBFloat16 : at::kFloat;
  MachineSpeed speed{.threads = at::get_num_threads(), .dtype = bf16 ? "bfloat16" : "float32"};
  speed.bandwidth = static_cast<double>(kArrayBytes) / fastest_read(seconds / 3);
  const int64_t inputs = 8192;
  const int64_t outputs = kArrayBytes / inputs / static_cast<int64_t>(c10::elementSize(dtype));
  const ops::Weight weight(at::full({outputs, inputs}, 0.01, dtype), dtype, at::kCPU);
  const at::Tensor rows = at::full({kPromptRows, inputs}, 0.5, dtype);
  const at::Tensor row = rows.narrow(0, 0, 1);
  const double token = fastest_pass(seconds / 3, [&] { ops::linear(row, weight); });
  speed.token_bandwidth = static_cast<double>(kArrayBytes) / token;
  const double prompt = fastest_pass(seconds / 3, [&] { ops::linear(rows, weight); });
  speed.prompt_rate = 2.0 * static_cast<double>(kPromptRows * inputs * outputs) / prompt;
  return speed;
}

}  // namespace valora::tuning
