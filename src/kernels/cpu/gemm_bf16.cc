#include "kernels/cpu/gemm_bf16.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/cpu/product_bodies.h"

namespace valora::kernels {
namespace {

constexpr int64_t kGroupPanels = 4;     // panels one task unit multiplies
constexpr int64_t kTokensPerTask = 32;  // of a LoRA run: bounds the intermediate, splits long prefills

struct LoraTask {
  const LoraRun* run;
  int64_t begin, end;
};

// Even split of a run, so that its last task is not a sliver.
void split(const LoraRun& run, std::vector<LoraTask>& tasks) {
  const int64_t tokens = run.token_end - run.token_begin;
  const int64_t pieces = (tokens + kTokensPerTask - 1) / kTokensPerTask;
  for (int64_t i = 0; i < pieces; ++i)
    tasks.push_back({&run, run.token_begin + tokens * i / pieces, run.token_begin + tokens * (i + 1) / pieces});
}

const ProductBodies& bodies() {
  switch (isa()) {
#ifdef __x86_64__
    case Isa::kAvx512Bf16: return kAvx512Bf16Products;
    case Isa::kAvx512: return kAvx512Products;
    case Isa::kAvx2: return kAvx2Products;
#endif
    default: return kPortableProducts;
  }
}

void run_task(const ProductBodies& body, const LoraTask& task, const bf16* x, int64_t ldx, bf16* y, int64_t ldy) {
  const LoraRun& run = *task.run;
  const int64_t m = task.end - task.begin;
  bf16 intermediate[kTokensPerTask * 256];  // rank is at most 256 (adapters/adapter_spec.h)
  body.store_bf16(x + task.begin * ldx, m, ldx, run.a, 0, panels_of(run.a.n), nullptr, intermediate, run.a.n);
  body.add_bf16(intermediate, m, run.a.n, run.b, 0, panels_of(run.b.n), run.coefficient, y + task.begin * ldy, ldy);
}

}  // namespace

void pack_panels(const bf16* w, int64_t n, int64_t k, bf16* panels) {
  const int64_t pairs = (k + 1) / 2;
  for (int64_t p = 0; p < panels_of(n); ++p)
    for (int64_t q = 0; q < pairs; ++q)
      for (int64_t j = 0; j < 16; ++j)
        for (int64_t h = 0; h < 2; ++h) {
          const int64_t row = p * 16 + j, column = q * 2 + h;
          *panels++ = row < n && column < k ? w[row * k + column] : bf16{0};
        }
}

template <typename Y>
void gemm_bf16(const bf16* x, int64_t m, int64_t ldx, const Panels& w, const float* bias, Y* y, int64_t ldy,
               const ParallelFor& parallel) {
  const int64_t panels = panels_of(w.n);
  const int64_t groups = (panels + kGroupPanels - 1) / kGroupPanels;
  // Below about 32k multiply-adds a second thread costs more than it brings.
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, m * w.k * 16 * kGroupPanels));
  const ProductBodies& body = bodies();
  parallel(0, groups, grain, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kGroupPanels, last = std::min(panels, end * kGroupPanels);
    if constexpr (std::is_same_v<Y, float>) body.store_float(x, m, ldx, w, first, last, bias, y, ldy);
    else body.store_bf16(x, m, ldx, w, first, last, bias, y, ldy);
  });
}

template void gemm_bf16(const bf16*, int64_t, int64_t, const Panels&, const float*, bf16*, int64_t,
                        const ParallelFor&);
template void gemm_bf16(const bf16*, int64_t, int64_t, const Panels&, const float*, float*, int64_t,
                        const ParallelFor&);

void lora_bf16(const bf16* x, int64_t ldx, bf16* y, int64_t ldy, std::span<const LoraRun> runs,
               const ParallelFor& parallel) {
  std::vector<LoraTask> tasks;
  tasks.reserve(runs.size());
  for (const LoraRun& run : runs) split(run, tasks);
  const ProductBodies& body = bodies();
  parallel(0, static_cast<int64_t>(tasks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run_task(body, tasks[i], x, ldx, y, ldy);
  });
}

}  // namespace valora::kernels
