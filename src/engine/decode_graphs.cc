#include "engine/decode_graphs.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/decode_kinds.h"
#include "engine/model_fault.h"
#include "ops/decode_tables.h"
#include "ops/launch_capture.h"

namespace valora {
namespace {

struct CapturedStep {
  std::unique_ptr<ops::DecodeTables> tables;
  std::unique_ptr<ops::CapturedLaunches> launches;
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

class CapturedDecodeGraphs final : public DecodeGraphs {
 public:
  CapturedDecodeGraphs(const models::Model& model, const ops::KvArena& arena,
                       std::unique_ptr<ops::LaunchCapture> capture)
      : model_(model),
        arena_(arena),
        capture_(std::move(capture)),
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

    // The call before the capture stores the same keys and values that the replay stores.
    step.launches = capture_->capture([&] { step.hidden = model_.forward(fixed); });
    return step;
  }

  const models::Model& model_;
  ops::KvArena arena_;
  std::unique_ptr<ops::LaunchCapture> capture_;
  std::vector<uint64_t> decoded_;
  TouchedModules touched_;
  CaptureTries tries_;
  DecodeKinds<CapturedStep> kinds_;
};

}  // namespace

std::unique_ptr<DecodeGraphs> DecodeGraphs::make(const models::Model& model,
                                                 const ops::KvArena& arena) {
  if (!ops::decode_can_be_captured(arena, model.spec().heads)) return nullptr;
  auto capture = ops::LaunchCapture::make(arena.data().device());
  if (!capture) return nullptr;
  return std::make_unique<CapturedDecodeGraphs>(model, arena, std::move(capture));
}

}  // namespace valora
