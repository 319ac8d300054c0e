#include "engine/graphs/step_graphs.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log/log.h"
#include "engine/graphs/step_kinds.h"
#include "engine/memory/free_memory.h"
#include "engine/runner/model_fault.h"
#include "ops/launch/launch_capture.h"
#include "ops/step/step_tables.h"

namespace valora {
namespace {

// Which steps are captured as CUDA graphs.
enum class Captured : uint8_t {
  kNone,
  kDecodes,  // steps of one token per sequence, of kinds that steps have had
  kSeen,     // steps of kinds that steps have had
  kAll       // these, and likely ones ahead
};

// As VALORA_GPU_CAPTURE says, for comparisons: none, decode, seen or all, which is the default.
Captured wanted_captures() {
  const char* const given = std::getenv("VALORA_GPU_CAPTURE");
  const std::string_view wanted = given ? given : "all";
  if (wanted == "none") return Captured::kNone;
  if (wanted == "decode") return Captured::kDecodes;
  if (wanted == "seen") return Captured::kSeen;
  if (wanted != "all")
    spdlog::warn("VALORA_GPU_CAPTURE is {}, not all, seen, decode or none; all is used", wanted);
  return Captured::kAll;
}

// Free memory that captures ahead need on each rank: more than two forwards of kMostStepTokens rows
// take with models of 7 billion weights.
constexpr int64_t kRoomAhead = 256 << 20;

struct CapturedStep {
  std::unique_ptr<ops::StepTables> tables;
  std::unique_ptr<ops::CapturedLaunches> launches;
  Communicator::Stats collectives;  // in one launch
};

int64_t heads_of_rank(const models::Model& model, const Communicator* communicator) {
  return model.spec().heads / (communicator ? communicator->ranks() : 1);
}

// One bit per module that steps run: an adapter's other modules do not affect launches.
std::vector<uint64_t> step_modules(const models::Model& model) {
  const auto& modules = model.spec().modules.modules();
  std::vector<uint64_t> bits((modules.size() + 63) / 64);
  for (size_t i = 0; i < modules.size(); ++i)
    if (!modules[i].visual && modules[i].kind == adapters::ModuleKind::kLinear)
      bits[i / 64] |= uint64_t{1} << (i % 64);
  return bits;
}

// Steps run one at a time, so all graphs share their tables, inputs and outputs.
class CapturedStepGraphs final : public StepGraphs {
 public:
  CapturedStepGraphs(const models::Model& model, const ops::KvArena& arena,
                     const ops::StateArena* states, const StepLimits& limits, int rank,
                     Communicator* communicator, Captured captured,
                     std::unique_ptr<ops::LaunchCapture> capture)
      : model_(model),
        arena_(arena),
        states_(states ? std::optional(*states) : std::nullopt),
        rank_(rank),
        heads_(heads_of_rank(model, communicator)),
        communicator_(communicator),
        captured_(captured),
        capture_(std::move(capture)),
        modules_(step_modules(model)),
        tables_(std::make_shared<ops::DeviceTables>()),
        likely_(limits) {}

  std::optional<at::Tensor> forward(const models::Batch& batch) override {
    const auto bounds = bounds_of(batch);
    if (!bounds) return std::nullopt;
    const StepKind kind = kind_of(*bounds, batch);
    if (kind.merged) merged_ = batch.adaptation.merged;
    CapturedStep* step = kinds_.find(kind);
    if (!step && kinds_.due(kind) && tries_.now())
      step =
          tried(tries_, [&] { return &kinds_.insert(kind, [&] { return capture(kind, false); }); });
    if (!step) return std::nullopt;
    fill(*step, *bounds, batch);
    step->launches->replay();
    ++replays_;
    if (communicator_ && rank_ == 0) communicator_->count_replay(step->collectives);
    return hidden_.narrow(0, 0, batch.tokens.size(0));
  }

  void expect_adapter(const ops::AdapterWeights& adapter) override {
    const std::vector<uint64_t> bits = of_steps(adapter.touched());
    touched_.add(bits);
    changed_.add(of_steps(adapter.changed()));
    if (TouchedModules::any(bits)) likely_.expect(adapter.max_rank());
  }

  bool capture_ahead(bool first) override {
    // A lack of memory may pass, but steps need what there is.
    if (captured_ != Captured::kAll || ahead_tries_.ended() || ahead_tries_.pause() > 0 ||
        tries_.ended() || tries_.pause() > 0)
      return false;
    kinds_.erase_if([&](const StepKind& kind) {
      return !touched_.current(kind.touched) || !changed_.current(kind.changed);
    });
    const auto kind = likely_.next(kinds_, touched_, changed_, merged_now(), first);
    if (!kind) return false;
    tried(ahead_tries_,
          [&] { return &kinds_.insert_ahead(*kind, [&] { return capture(*kind, true); }); });
    return true;
  }

  GraphStats stats() const override { return {kinds_.graphs(), replays_}; }

 private:
  std::optional<ops::StepBounds> bounds_of(const models::Batch& batch) const {
    const bool visual = !batch.visual.empty();
    if (batch.rope_lengths.defined() || (visual && model_.spec().visual_levels > 0))
      return std::nullopt;
    const bool embedded = visual || !batch.vocabulary.empty();
    const auto bounds =
        ops::step_bounds(arena_, heads_, batch.spans, batch.adaptation.lora, embedded);
    const bool wanted = bounds && (captured_ != Captured::kDecodes || !bounds->embedded);
    return wanted ? bounds : std::nullopt;
  }

  StepKind kind_of(const ops::StepBounds& bounds, const models::Batch& batch) {
    StepKind kind;
    kind.bounds = bounds;
    kind.touched = touched_.of_step(of_steps(batch.adaptation.lora.touched()));
    kind.changed = changed_.of_step(of_steps(batch.adaptation.lora.changed()));
    set_merged(kind, batch.adaptation.merged);
    return kind;
  }

  std::vector<uint64_t> of_steps(std::span<const uint64_t> touched) const {
    std::vector<uint64_t> bits(touched.begin(), touched.end());
    for (size_t i = 0; i < bits.size(); ++i) bits[i] &= modules_[i];
    return bits;
  }

  static void set_merged(StepKind& kind, const models::MergedWeights* merged) {
    kind.merged = merged;
    if (merged)
      for (const ops::Weight& weight : merged->modules)
        kind.merged_modules.push_back(weight.defined());
  }

  StepKind merged_now() const {
    StepKind kind;
    set_merged(kind, merged_);
    return kind;
  }

  // make(): captures a step. → null if that fails
  template <typename Make>
  static CapturedStep* tried(CaptureTries& tries, Make&& make) {
    try {
      CapturedStep* step = make();
      tries.succeeded();
      return step;
    } catch (const RankLostError&) {
      throw;
    } catch (const std::exception& e) {
      if (is_out_of_memory(e))
        tries.lacked_memory();
      else
        tries.failed();
      spdlog::warn("a step was not captured as a CUDA graph{}: {}",
                   tries.ended() ? ", and no more will be" : "; a later one may be", reason_of(e));
      return nullptr;
    }
  }

  // Captures the step on all ranks or on none, so that all ranks keep running the same collectives
  // and trying the same captures.
  CapturedStep capture(const StepKind& kind, bool ahead) {
    if (!communicator_) return captured(tables_for(kind.bounds), kind);
    std::optional<CapturedStep> step = on_all([&] {
      // Once the ranks are in collectives, a lack of memory on one of them would end the engine.
      if (ahead && available_memory(arena_.data().device()) < kRoomAhead) throw std::bad_alloc();
      return tables_for(kind.bounds);
    });
    int calls = 0;
    return on_all([&] {
      try {
        return captured(std::move(*step), kind, &calls);
      } catch (const std::exception& e) {
        // The other ranks are in the step's collectives, which this rank will never enter.
        if (calls == 0) throw RankLostError(reason_of(e));
        throw;
      }
    });
  }

  // make(), if all ranks succeed; throws on all of them if one fails.
  template <typename Make>
  CapturedStep on_all(Make&& make) {
    std::optional<CapturedStep> step;
    std::string why;
    bool memory = true;
    try {
      step.emplace(make());
    } catch (const RankLostError&) {
      throw;
    } catch (const std::exception& e) {
      why = reason_of(e);
      memory = !is_out_of_memory(e);
    }
    if (communicator_->all_agree(rank_, step.has_value())) return std::move(*step);
    if (!communicator_->all_agree(rank_, memory))
      throw std::runtime_error("a rank is out of memory");
    throw std::runtime_error(why.empty() ? "another rank failed to" : why);
  }

  void make_memory() {
    const auto options = at::TensorOptions().dtype(arena_.dtype()).device(arena_.data().device());
    const std::vector<int64_t> rows{ops::kMostStepTokens, model_.spec().hidden};
    embedded_ = at::empty(rows, options);
    hidden_ = at::empty(rows, options);
  }

  // Fills the tables and, if they are an input, the embeddings, which are computed outside the
  // graph because visual ones are in separate tensors and adapters' are chosen on the host.
  void fill(CapturedStep& step, const ops::StepBounds& bounds, const models::Batch& batch) {
    step.tables->set(batch.tokens, batch.positions, batch.spans, batch.state_spans,
                     batch.adaptation.lora);
    if (!bounds.embedded) return;
    models::Batch tokens;
    tokens.tokens = step.tables->tokens().narrow(0, 0, batch.tokens.size(0));
    tokens.host_tokens = batch.host_tokens;
    tokens.vocabulary = batch.vocabulary;
    tokens.visual = batch.visual;
    embedded_.narrow(0, 0, batch.tokens.size(0)).copy_(model_.embed(tokens));
  }

  // With the tables of a step without tokens.
  CapturedStep tables_for(const ops::StepBounds& bounds) {
    if (!hidden_.defined()) make_memory();
    CapturedStep step;
    step.tables = std::make_unique<ops::StepTables>(arena_, states(), heads_, model_.spec().axes,
                                                    bounds, tables_);
    return step;
  }

  // Launches the step without tokens, once before the capture and once in it. calls: counts those
  // that are complete.
  CapturedStep captured(CapturedStep step, const StepKind& kind, int* calls = nullptr) {
    const ops::StepBounds& bounds = kind.bounds;
    models::Batch fixed;
    fixed.tokens = step.tables->tokens();
    if (bounds.embedded) fixed.embedded = embedded_.narrow(0, 0, bounds.tokens);
    fixed.positions = step.tables->positions();
    fixed.kv = &arena_;
    fixed.tables = step.tables->spans();
    fixed.states = states();
    fixed.state_tables = step.tables->states();
    if (kind.merged) fixed.adaptation.merged = merged_;
    fixed.adaptation.lora.also_touch(kind.touched);
    fixed.adaptation.lora.also_change(kind.changed);
    fixed.adaptation.lora.on_device() = step.tables->lora();

    const Communicator::Stats before =
        communicator_ ? communicator_->stats() : Communicator::Stats{};
    step.launches = capture_->capture([&] {
      hidden_.narrow(0, 0, bounds.tokens).copy_(model_.forward(fixed));
      if (calls) ++*calls;
    });
    if (communicator_) step.collectives = communicator_->stats() - before;
    return step;
  }

  const ops::StateArena* states() const { return states_ ? &*states_ : nullptr; }

  const models::Model& model_;
  ops::KvArena arena_;
  std::optional<ops::StateArena> states_;
  const int rank_;
  const int64_t heads_;  // of this rank
  Communicator* const communicator_;
  const Captured captured_;
  std::unique_ptr<ops::LaunchCapture> capture_;
  std::vector<uint64_t> modules_;
  std::shared_ptr<ops::DeviceTables> tables_;
  at::Tensor embedded_, hidden_;  // [kMostStepTokens, width], allocated at the first capture
  TouchedModules touched_, changed_;
  CaptureTries tries_, ahead_tries_;
  StepKinds<CapturedStep> kinds_;
  LikelyKinds likely_;
  const models::MergedWeights* merged_ = nullptr;  // of the last step with any
  uint64_t replays_ = 0;
};

}  // namespace

std::unique_ptr<StepGraphs> StepGraphs::make(const models::Model& model, const ops::KvArena& arena,
                                             const ops::StateArena* states,
                                             const StepLimits& limits, int rank,
                                             Communicator* communicator) {
  if (!ops::steps_can_be_captured(arena, heads_of_rank(model, communicator))) return nullptr;
  const Captured captured = wanted_captures();
  if (captured == Captured::kNone) return nullptr;
  auto capture = ops::LaunchCapture::make(arena.data().device());
  if (!capture) return nullptr;
  return std::make_unique<CapturedStepGraphs>(model, arena, states, limits, rank, communicator,
                                              captured, std::move(capture));
}

}  // namespace valora
