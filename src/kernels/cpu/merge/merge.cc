#include "kernels/cpu/merge/merge.h"
#include "kernels/cpu/freed.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/merge/merge_block.h"
#include "kernels/cpu/work_queue.h"

namespace valora::kernels {
namespace {

// Weights per block: few enough for load balance, enough to amortise transposing A.
constexpr int64_t kBlockBytes = 512 << 10;
constexpr int64_t kBlockPanels = 16;         // panels that share one transposed A
constexpr int64_t kScratchBytes = 32 << 10;  // for the transposed A, to stay near L1

struct Piece {
  size_t merge;
  MergeBlock block;
};

// Vectors per block: a multiple of the longest run.
template <typename T>
int64_t block_vectors(int64_t rank) {
  constexpr int64_t kRunVectors = kMaxMergeRun / kVectorInputs<T>;
  const int64_t by_weights = kBlockBytes / (kBlockPanels * 64);
  const auto run_bytes = static_cast<int64_t>(scratch_elements<T>(rank, kRunVectors) * sizeof(T));
  const int64_t by_scratch = kScratchBytes / run_bytes * kRunVectors;
  return std::max(kRunVectors, std::min(by_weights, by_scratch) / kRunVectors * kRunVectors);
}

template <typename T>
std::vector<Piece> pieces_of(std::span<const Merge<T>> merges) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < merges.size(); ++i) {
    const Merge<T>& m = merges[i];
    if (m.w.n <= 0 || m.a.n <= 0) continue;
    const int64_t panels = panels_of(m.w.n),
                  vectors = panel_elements<T>(m.w.k) / (kPanelOutputs * kVectorInputs<T>);
    const int64_t step = block_vectors<T>(m.a.n);
    for (int64_t p = 0; p < panels; p += kBlockPanels)
      for (int64_t v = 0; v < vectors; v += step)
        pieces.push_back(
            {i, {p, std::min(panels, p + kBlockPanels), v, std::min(vectors, v + step)}});
  }
  return pieces;
}

// 64-byte aligned scratch for the largest block.
template <typename T>
std::unique_ptr<T[], Freed> scratch_for(std::span<const Merge<T>> merges) {
  int64_t elements = 1;
  for (const Merge<T>& m : merges)
    if (m.a.n > 0)
      elements = std::max(elements, scratch_elements<T>(m.a.n, block_vectors<T>(m.a.n)));
  const size_t bytes = (static_cast<size_t>(elements) * sizeof(T) + 63) / 64 * 64;
  T* memory = static_cast<T*>(std::aligned_alloc(64, bytes));
  if (!memory) throw std::bad_alloc();
  return std::unique_ptr<T[], Freed>(memory);
}

}  // namespace

template <typename T>
void merge(std::span<const Merge<T>> merges, const ParallelFor& parallel) {
  const std::vector<Piece> pieces = pieces_of(merges);
  const KernelSet<T>& kernels = kernel_set<T>();
  WorkQueue queue(static_cast<int64_t>(pieces.size()));
  parallel(0, queue.count(), 1, [&](int64_t begin, int64_t end) {
    const auto scratch = scratch_for(merges);
    queue.work(begin, end, [&](int64_t i) {
      kernels.merge(merges[pieces[i].merge], pieces[i].block, scratch.get());
    });
  });
}

template void merge(std::span<const Merge<float>>, const ParallelFor&);
template void merge(std::span<const Merge<bf16>>, const ParallelFor&);

}  // namespace valora::kernels
