#include "engine/decode_graphs.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <list>
#include <vector>

#include "base/log.h"
#include "ops/decode_tables.h"

namespace valora {
namespace {

constexpr size_t kMostKinds = 96;
constexpr int kSeenBefore = 2;  // steps of a kind that run without a graph first

// Steps whose launches are the same but for what lies in the tables.
struct Kind {
  ops::DecodeBounds bounds;
  std::vector<uint64_t> touched;  // modules of the adapters beside the weights, a bit each
  const models::MergedWeights* merged;
  std::vector<bool> merged_modules;  // that the merged adapter touches
  bool operator==(const Kind&) const = default;
};

struct Graph {
  Kind kind;
  int seen = 0;
  std::unique_ptr<ops::DecodeTables> tables;
  std::unique_ptr<at::cuda::CUDAGraph> launches;
  at::Tensor hidden;  // [bounds.tokens, width]
};

class CudaDecodeGraphs final : public DecodeGraphs {
 public:
  CudaDecodeGraphs(const models::Model& model, const ops::KvArena& arena)
      : model_(model),
        arena_(arena),
        stream_(c10::cuda::getStreamFromPool()),
        pool_(at::cuda::graph_pool_handle()) {}

  std::optional<at::Tensor> forward(const models::Batch& batch) override {
    if (failed_ || !batch.visual.empty() || batch.rope_lengths.defined()) return std::nullopt;
    const auto bounds = ops::decode_bounds(batch.spans, batch.adaptation.lora);
    if (!bounds) return std::nullopt;
    Graph& graph = find(kind_of(*bounds, batch));
    if (++graph.seen <= kSeenBefore) return std::nullopt;
    if (!graph.launches && !try_capture(graph, batch)) return std::nullopt;
    graph.tables->set(batch.tokens, batch.positions, batch.spans, batch.adaptation.lora);
    graph.launches->replay();
    return graph.hidden.narrow(0, 0, batch.tokens.size(0));
  }

 private:
  static Kind kind_of(const ops::DecodeBounds& bounds, const models::Batch& batch) {
    Kind kind{bounds, {}, batch.adaptation.merged, {}};
    const auto touched = batch.adaptation.lora.touched();
    kind.touched.assign(touched.begin(), touched.end());
    if (kind.merged)
      for (const ops::Weight& weight : kind.merged->modules)
        kind.merged_modules.push_back(weight.defined());
    return kind;
  }

  // The last used is found first.
  Graph& find(const Kind& kind) {
    const auto it = std::ranges::find(graphs_, kind, &Graph::kind);
    if (it != graphs_.end()) {
      graphs_.splice(graphs_.begin(), graphs_, it);
    } else {
      if (graphs_.size() == kMostKinds) forget_graphs();
      graphs_.push_front({kind, 0, nullptr, nullptr, {}});
    }
    return graphs_.front();
  }

  // All at once: graphs share memory, and the workspaces of libraries, which end with any of them.
  void forget_graphs() {
    graphs_.clear();
    pool_ = at::cuda::graph_pool_handle();
  }

  bool try_capture(Graph& graph, const models::Batch& batch) {
    try {
      capture(graph, batch);
      return true;
    } catch (const std::exception& e) {
      spdlog::warn("decode steps run without CUDA graphs: {}", e.what());
      failed_ = true;
      return false;
    }
  }

  void capture(Graph& graph, const models::Batch& batch) {
    graph.tables = std::make_unique<ops::DecodeTables>(arena_, model_.spec().heads,
                                                       model_.spec().axes, graph.kind.bounds);
    graph.tables->set(batch.tokens, batch.positions, batch.spans, batch.adaptation.lora);
    models::Batch fixed;
    fixed.tokens = graph.tables->tokens();
    fixed.positions = graph.tables->positions();
    fixed.spans = batch.spans;
    fixed.kv = &arena_;
    fixed.tables = graph.tables->spans();
    fixed.adaptation = batch.adaptation;
    fixed.adaptation.lora.on_device() = graph.tables->lora();

    auto launches = std::make_unique<at::cuda::CUDAGraph>();
    c10::cuda::getCurrentCUDAStream().synchronize();
    const c10::cuda::CUDAStreamGuard guard(stream_);
    // Once before: libraries allocate what they keep per stream. It stores the same keys and values
    // that the replay stores.
    (void)model_.forward(fixed);
    stream_.synchronize();
    // The mover's thread goes on copying meanwhile.
    launches->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    try {
      graph.hidden = model_.forward(fixed);
    } catch (...) {
      try {
        launches->capture_end();
      } catch (const std::exception&) {  // the first error counts
      }
      throw;
    }
    launches->capture_end();
    graph.launches = std::move(launches);
  }

  const models::Model& model_;
  ops::KvArena arena_;
  c10::cuda::CUDAStream stream_;  // of captures; the mover has another
  at::cuda::MempoolId_t pool_;    // shared: graphs run one at a time
  std::list<Graph> graphs_;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<DecodeGraphs> DecodeGraphs::make(const models::Model& model,
                                                 const ops::KvArena& arena) {
  if (!arena.data().is_cuda() || !ops::decode_can_be_captured(arena, model.spec().heads))
    return nullptr;
  return std::make_unique<CudaDecodeGraphs>(model, arena);
}

}  // namespace valora
