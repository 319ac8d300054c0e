#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/capture_launches.h"
#include "engine/decode_graphs.h"
#include "engine/decode_kinds.h"
#include "engine/model_fault.h"
#include "ops/decode_tables.h"

namespace valora {
namespace {

namespace cuda_memory = c10::cuda::CUDACachingAllocator;

// The memory in which the launches of all graphs compute: they run one at a time. torch's allocator
// ends it with its last graph, and then wants another name for the next one.
class GraphMemory {
 public:
  explicit GraphMemory(c10::cuda::CUDAStream stream) : stream_(stream) {}

  void begin() {
    if (users_ == 0) id_ = at::cuda::graph_pool_handle();
    cuda_memory::beginAllocateToPool(
        device(), id_, [only = stream_.stream()](cudaStream_t s) { return s == only; });
    ++users_;
  }
  void end() { cuda_memory::endAllocateToPool(device(), id_); }
  void release() {
    --users_;
    cuda_memory::releasePool(device(), id_);
  }

 private:
  c10::DeviceIndex device() const { return stream_.device_index(); }

  c10::cuda::CUDAStream stream_;  // of captures
  at::cuda::MempoolId_t id_{};
  int users_ = 0;
};

// The program may have a CUDA runtime beside torch's, whose last error torch does not take: the
// next launch of ours would be blamed for it.
void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  C10_CUDA_CHECK(status);
}

// Not at::cuda::CUDAGraph: if one of these cannot be captured, its allocations do not end, and in
// some releases its end is that of the workspaces of libraries on its stream, which others use,
// too.
class Launches final : public CaptureCalls {
 public:
  Launches(c10::cuda::CUDAStream stream, std::shared_ptr<GraphMemory> memory)
      : stream_(stream), memory_(std::move(memory)) {}
  ~Launches() override {
    if (!graph_) return;
    (void)cudaGraphExecDestroy(graph_);
    (void)cudaGetLastError();
    release_memory();
  }

  void replay() { check(cudaGraphLaunch(graph_, c10::cuda::getCurrentCUDAStream())); }

  void begin_memory() override { memory_->begin(); }
  void end_memory() noexcept override {
    warned([&] { memory_->end(); });
  }
  void release_memory() noexcept override {
    warned([&] { memory_->release(); });
  }
  // The mover's thread goes on copying meanwhile.
  void begin_launches() override {
    check(cudaStreamBeginCapture(stream_.stream(), cudaStreamCaptureModeThreadLocal));
  }
  void end_launches() override {
    check(cudaStreamEndCapture(stream_.stream(), &captured_));
    TORCH_CHECK(captured_, "a captured step has no launches");
  }
  void abandon_launches() noexcept override {
    cudaGraph_t partial = nullptr;
    (void)cudaStreamEndCapture(stream_.stream(), &partial);
    if (partial) (void)cudaGraphDestroy(partial);
    (void)cudaGetLastError();  // the first error counts
  }
  void make_graph() override {
    const cudaError_t made = cudaGraphInstantiate(&graph_, captured_, 0);
    (void)cudaGraphDestroy(captured_);
    if (made != cudaSuccess) graph_ = nullptr;
    check(made);
  }

 private:
  template <typename Call>
  static void warned(Call&& call) noexcept {
    try {
      call();
    } catch (const std::exception& e) {
      spdlog::error("the memory of CUDA graphs: {}", reason_of(e));
    }
  }

  c10::cuda::CUDAStream stream_;
  std::shared_ptr<GraphMemory> memory_;
  cudaGraph_t captured_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
};

struct CapturedStep {
  std::unique_ptr<ops::DecodeTables> tables;
  std::unique_ptr<Launches> launches;
  at::Tensor hidden;  // [bounds.tokens, width]
};

// A bit per module that decode steps run: an adapter's others do not change their launches.
std::vector<uint64_t> decoded_modules(const models::Model& model) {
  const auto& modules = model.spec().modules.modules();
  std::vector<uint64_t> bits((modules.size() + 63) / 64);
  for (size_t i = 0; i < modules.size(); ++i)
    if (!modules[i].visual && modules[i].kind == adapters::ModuleKind::kLinear)
      bits[i / 64] |= uint64_t{1} << (i % 64);
  return bits;
}

class CudaDecodeGraphs final : public DecodeGraphs {
 public:
  CudaDecodeGraphs(const models::Model& model, const ops::KvArena& arena)
      : model_(model),
        arena_(arena),
        stream_(c10::cuda::getStreamFromPool()),
        memory_(std::make_shared<GraphMemory>(stream_)),
        decoded_(decoded_modules(model)) {}

  std::optional<at::Tensor> forward(const models::Batch& batch) override {
    if (!batch.visual.empty() || batch.rope_lengths.defined()) return std::nullopt;
    const auto bounds = ops::decode_bounds(batch.spans, batch.adaptation.lora);
    if (!bounds) return std::nullopt;
    const DecodeKind kind = kind_of(*bounds, batch);
    CapturedStep* step = kinds_.find(kind);
    if (!step && kinds_.due(kind) && tries_.now()) step = try_capture(kind, *bounds, batch);
    if (!step) return std::nullopt;
    step->tables->set(batch.tokens, batch.positions, batch.spans, batch.adaptation.lora);
    step->launches->replay();
    return step->hidden.narrow(0, 0, batch.tokens.size(0));
  }

 private:
  DecodeKind kind_of(const ops::DecodeBounds& bounds, const models::Batch& batch) {
    DecodeKind kind{bounds.tokens, bounds.longest, bounds.lora_rows, bounds.max_rank, {}, {}, {}};
    const auto touched = batch.adaptation.lora.touched();
    std::vector<uint64_t> decoded(touched.begin(), touched.end());
    for (size_t i = 0; i < decoded.size(); ++i) decoded[i] &= decoded_[i];
    kind.touched = touched_.of_step(decoded);
    const models::MergedWeights* merged = batch.adaptation.merged;
    kind.merged = merged;
    if (merged)
      for (const ops::Weight& weight : merged->modules)
        kind.merged_modules.push_back(weight.defined());
    return kind;
  }

  CapturedStep* try_capture(const DecodeKind& kind, const ops::DecodeBounds& bounds,
                            const models::Batch& batch) {
    try {
      CapturedStep& step = kinds_.insert(kind, [&] { return capture(kind, bounds, batch); });
      tries_.succeeded();
      return &step;
    } catch (const std::exception& e) {
      if (lacks_memory(e))
        tries_.lacked_memory();
      else
        tries_.failed();
      if (tries_.ended())
        spdlog::warn("no more decode steps are captured as CUDA graphs: {}", reason_of(e));
      else
        spdlog::warn("a decode step was not captured as a CUDA graph, which is tried again: {}",
                     reason_of(e));
      return nullptr;
    }
  }

  CapturedStep capture(const DecodeKind& kind, const ops::DecodeBounds& bounds,
                       const models::Batch& batch) {
    CapturedStep step;
    step.tables = std::make_unique<ops::DecodeTables>(arena_, model_.spec().heads,
                                                      model_.spec().axes, bounds);
    step.tables->set(batch.tokens, batch.positions, batch.spans, batch.adaptation.lora);
    models::Batch fixed;
    fixed.tokens = step.tables->tokens();
    fixed.positions = step.tables->positions();
    fixed.spans = batch.spans;
    fixed.kv = &arena_;
    fixed.tables = step.tables->spans();
    fixed.adaptation = batch.adaptation;
    fixed.adaptation.lora.also_touch(kind.touched);
    fixed.adaptation.lora.on_device() = step.tables->lora();

    auto launches = std::make_unique<Launches>(stream_, memory_);
    c10::cuda::getCurrentCUDAStream().synchronize();
    const c10::cuda::CUDAStreamGuard guard(stream_);
    // Once before: libraries allocate what they keep per stream. It stores the same keys and values
    // that the replay stores.
    (void)model_.forward(fixed);
    stream_.synchronize();
    capture_launches(*launches, [&] { step.hidden = model_.forward(fixed); });
    step.launches = std::move(launches);
    return step;
  }

  const models::Model& model_;
  ops::KvArena arena_;
  c10::cuda::CUDAStream stream_;  // of captures; the mover has another
  std::shared_ptr<GraphMemory> memory_;
  std::vector<uint64_t> decoded_;
  TouchedModules touched_;
  CaptureTries tries_;
  DecodeKinds<CapturedStep> kinds_;
};

}  // namespace

std::unique_ptr<DecodeGraphs> DecodeGraphs::make(const models::Model& model,
                                                 const ops::KvArena& arena) {
  if (!arena.data().is_cuda() || !ops::decode_can_be_captured(arena, model.spec().heads))
    return nullptr;
  return std::make_unique<CudaDecodeGraphs>(model, arena);
}

}  // namespace valora
