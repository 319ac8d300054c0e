#include "engine/step_graphs.h"

#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/model_fault.h"
#include "engine/step_kinds.h"
#include "ops/launch_capture.h"
#include "ops/step_tables.h"

namespace valora {
namespace {

enum class Captured : uint8_t { kNone, kDecodes, kAll };

// What VALORA_GPU_CAPTURE says, to compare.
Captured wanted_captures() {
  const char* const given = std::getenv("VALORA_GPU_CAPTURE");
  const std::string_view wanted = given ? given : "all";
  if (wanted == "none") return Captured::kNone;
  if (wanted == "decode") return Captured::kDecodes;
  if (wanted != "all")
    spdlog::warn("VALORA_GPU_CAPTURE is {}, not all, decode or none; all is used", wanted);
  return Captured::kAll;
}

struct CapturedStep {
  std::unique_ptr<ops::StepTables> tables;
  std::unique_ptr<ops::CapturedLaunches> launches;
};

// A bit per module that steps run: an adapter's others do not change their launches.
std::vector<uint64_t> step_modules(const models::Model& model) {
  const auto& modules = model.spec().modules.modules();
  std::vector<uint64_t> bits((modules.size() + 63) / 64);
  for (size_t i = 0; i < modules.size(); ++i)
    if (!modules[i].visual && modules[i].kind == adapters::ModuleKind::kLinear)
      bits[i / 64] |= uint64_t{1} << (i % 64);
  return bits;
}

// Steps run one at a time, so that all graphs share their tables, inputs and outputs.
class CapturedStepGraphs final : public StepGraphs {
 public:
  CapturedStepGraphs(const models::Model& model, const ops::KvArena& arena, Captured captured,
                     std::unique_ptr<ops::LaunchCapture> capture)
      : model_(model),
        arena_(arena),
        captured_(captured),
        capture_(std::move(capture)),
        modules_(step_modules(model)),
        tables_(std::make_shared<ops::DeviceTables>()) {}

  std::optional<at::Tensor> forward(const models::Batch& batch) override {
    const auto bounds = bounds_of(batch);
    if (!bounds) return std::nullopt;
    const StepKind kind = kind_of(*bounds, batch);
    CapturedStep* step = kinds_.find(kind);
    if (!step && kinds_.due(kind) && tries_.now()) step = try_capture(kind, batch);
    if (!step) return std::nullopt;
    fill(*step, *bounds, batch);
    step->launches->replay();
    return hidden_.narrow(0, 0, batch.tokens.size(0));
  }

 private:
  std::optional<ops::StepBounds> bounds_of(const models::Batch& batch) const {
    const bool visual = !batch.visual.empty();
    if (batch.rope_lengths.defined() || !batch.vocabulary.empty() ||
        (visual && model_.spec().visual_levels > 0))
      return std::nullopt;
    const auto bounds =
        ops::step_bounds(arena_, model_.spec().heads, batch.spans, batch.adaptation.lora, visual);
    const bool wanted = bounds && (captured_ == Captured::kAll || !bounds->embedded);
    return wanted ? bounds : std::nullopt;
  }

  StepKind kind_of(const ops::StepBounds& bounds, const models::Batch& batch) {
    StepKind kind;
    kind.bounds = bounds;
    const auto touched = batch.adaptation.lora.touched();
    std::vector<uint64_t> of_step(touched.begin(), touched.end());
    for (size_t i = 0; i < of_step.size(); ++i) of_step[i] &= modules_[i];
    kind.touched = touched_.of_step(of_step);
    const models::MergedWeights* merged = batch.adaptation.merged;
    kind.merged = merged;
    if (merged)
      for (const ops::Weight& weight : merged->modules)
        kind.merged_modules.push_back(weight.defined());
    return kind;
  }

  CapturedStep* try_capture(const StepKind& kind, const models::Batch& batch) {
    try {
      CapturedStep& step = kinds_.insert(kind, [&] { return capture(kind, batch); });
      tries_.succeeded();
      return &step;
    } catch (const std::exception& e) {
      if (lacks_memory(e))
        tries_.lacked_memory();
      else
        tries_.failed();
      if (tries_.ended())
        spdlog::warn("no more steps are captured as CUDA graphs: {}", reason_of(e));
      else
        spdlog::warn("a step was not captured as a CUDA graph, which is tried again: {}",
                     reason_of(e));
      return nullptr;
    }
  }

  void make_memory() {
    const auto options = at::TensorOptions().dtype(arena_.dtype()).device(arena_.data().device());
    const std::vector<int64_t> rows{ops::kMostStepTokens, model_.spec().hidden};
    embedded_ = at::empty(rows, options);
    hidden_ = at::empty(rows, options);
  }

  // The tables and, if they are an input, the embeddings, which are made outside of the graph:
  // visual ones are in tensors of their own.
  void fill(CapturedStep& step, const ops::StepBounds& bounds, const models::Batch& batch) {
    step.tables->set(batch.tokens, batch.positions, batch.spans, batch.adaptation.lora);
    if (!bounds.embedded) return;
    models::Batch tokens;
    tokens.tokens = step.tables->tokens().narrow(0, 0, batch.tokens.size(0));
    tokens.visual = batch.visual;
    embedded_.narrow(0, 0, batch.tokens.size(0)).copy_(model_.embed(tokens));
  }

  CapturedStep capture(const StepKind& kind, const models::Batch& batch) {
    if (!hidden_.defined()) make_memory();
    const ops::StepBounds& bounds = kind.bounds;
    CapturedStep step;
    step.tables = std::make_unique<ops::StepTables>(arena_, model_.spec().heads, model_.spec().axes,
                                                    bounds, tables_);
    fill(step, bounds, batch);
    models::Batch fixed;
    fixed.tokens = step.tables->tokens();
    if (bounds.embedded) fixed.embedded = embedded_.narrow(0, 0, bounds.tokens);
    fixed.positions = step.tables->positions();
    fixed.spans = batch.spans;
    fixed.kv = &arena_;
    fixed.tables = step.tables->spans();
    fixed.adaptation = batch.adaptation;
    fixed.adaptation.lora.also_touch(kind.touched);
    fixed.adaptation.lora.on_device() = step.tables->lora();

    // The call before the capture stores the same keys and values that the replay stores.
    step.launches = capture_->capture(
        [&] { hidden_.narrow(0, 0, bounds.tokens).copy_(model_.forward(fixed)); });
    return step;
  }

  const models::Model& model_;
  ops::KvArena arena_;
  const Captured captured_;
  std::unique_ptr<ops::LaunchCapture> capture_;
  std::vector<uint64_t> modules_;
  std::shared_ptr<ops::DeviceTables> tables_;
  at::Tensor embedded_, hidden_;  // [kMostStepTokens, width], from the first capture on
  TouchedModules touched_;
  CaptureTries tries_;
  StepKinds<CapturedStep> kinds_;
};

}  // namespace

std::unique_ptr<StepGraphs> StepGraphs::make(const models::Model& model,
                                             const ops::KvArena& arena) {
  if (!ops::steps_can_be_captured(arena, model.spec().heads)) return nullptr;
  const Captured captured = wanted_captures();
  if (captured == Captured::kNone) return nullptr;
  auto capture = ops::LaunchCapture::make(arena.data().device());
  if (!capture) return nullptr;
  return std::make_unique<CapturedStepGraphs>(model, arena, captured, std::move(capture));
}

}  // namespace valora
