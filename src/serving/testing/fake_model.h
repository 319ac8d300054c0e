// A tensor side without tensors, which answers at once. As in a real one, the answer depends on all
// KV of a sequence, adapters are read on the mover's thread into the pool's blocks, and steps read
// them there.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "grammar/mask_filler.h"
#include "scheduler/testing/fake_runner.h"
#include "serving/model_side.h"
#include "serving/sequence.h"

namespace valora::serving::testing {

inline constexpr int kFakeVocabulary = 264;
inline constexpr int32_t kFakeAdapterBlocks = 2;

class FakeModel final : public ModelSide,
                        public ModelRunner,
                        public AdapterBackend,
                        public PoolBacking {
 public:
  // Called on the engine thread before each step; an error becomes the step's error.
  using OnStep = std::function<Status(const scheduler::StepPlan&)>;

  // One piece of work ahead, called on the engine thread; returns whether there is more.
  using PrepareAhead = std::function<bool()>;

  // Called on the thread that reads an adapter, before it is read.
  using OnRead = std::function<void(const LoadAdapter&)>;

  FakeModel(int32_t blocks, int32_t swap_blocks, OnStep on_step, PrepareAhead prepare_ahead = {},
            OnRead on_read = {})
      : on_step_(std::move(on_step)),
        prepare_ahead_(std::move(prepare_ahead)),
        on_read_(std::move(on_read)),
        kv_(blocks, swap_blocks) {}

  ModelRunner& runner() override { return *this; }
  AdapterBackend& adapters() override { return *this; }
  PoolBacking& memory() override { return *this; }

  // The digest of the adapter in this pretend folder.
  static Digest content_of(const std::string& path) {
    return DigestBuilder().add(std::string_view(path)).finish();
  }

  void run_thread(const std::function<void()>& loop) override { loop(); }
  void before_step() override {}
  void release_threads() override {}
  void on_idle() override {}
  std::string warm_up() override { return {}; }
  void expect_adapter(const LoadedAdapter&) override {}
  bool prepare_ahead() override { return prepare_ahead_ && prepare_ahead_(); }
  void forget_merged() override {}
  double merge_seconds() const override { return 0; }
  void fill(EngineStats& stats) const override { stats.visuals_encoded = 0; }
  Result<std::vector<float>> probabilities(adapters::ProblemType,
                                           const std::vector<float>& logits) const override {
    return logits;
  }

  std::vector<scheduler::FailedRequest> prepare(const scheduler::StepPlan&) override { return {}; }
  Result<std::vector<scheduler::StepOutput>> run(const scheduler::StepPlan& plan) override {
    if (on_step_) VALORA_CHECK(on_step_(plan));
    for (const scheduler::StepItem& item : plan.items) VALORA_CHECK(check_adapters(item));
    VALORA_TRY(outputs, kv_.run(plan));
    grammar::StepMasks masks(1);
    auto output = outputs.begin();
    for (const scheduler::StepItem& item : plan.items)
      if (item.yields) answer(item, *output++, masks);
    return outputs;
  }

  // Folders are just names; absolute paths do not exist. Reading values from a folder "broken…"
  // fails.
  Result<Read> read(const LoadAdapter& request) override {
    if (on_read_) on_read_(request);
    if (request.path.starts_with('/'))
      return not_found(request.path + " is not there", request.path);
    auto spec = std::make_shared<adapters::AdapterSpec>();
    spec->path = request.path;
    spec->digest = content_of(request.path);
    spec->max_rank = 8;
    auto loaded = std::make_shared<LoadedAdapter>();
    loaded->digest = spec->digest;
    loaded->need = {spec->digest, kFakeAdapterBlocks};
    loaded->tensors = std::make_shared<Tensors>();
    loaded->has_weights = loaded->on_decoder = true;
    loaded->rank = spec->max_rank;
    loaded->merge_use = std::make_shared<std::atomic<MergeUse>>(MergeUse::kAmongOthers);
    const std::lock_guard lock(mutex_);
    folders_[spec->digest] = request.path;
    return Read{std::move(spec), std::move(loaded), request.lazy};
  }
  Residency residency(const Digest& content) const override {
    const std::lock_guard lock(mutex_);
    return {placed_.contains(content) ? WeightsPlace::kPool : WeightsPlace::kFile, {}};
  }

  Status copy(const memory::Move& move) override {
    if (move.kind == memory::MoveKind::kLoadAdapter) {
      const std::lock_guard lock(mutex_);
      const std::string& folder = folders_.at(move.key);
      if (folder.starts_with("broken")) return unprocessable(folder + " is broken", "model");
    }
    kv_.copy(move);
    return {};
  }
  void on_loaded(const Digest& adapter, const std::vector<memory::BlockId>& blocks) override {
    const std::lock_guard lock(mutex_);
    placed_[adapter] = blocks;
  }
  void on_left(const Digest& adapter) override {
    const std::lock_guard lock(mutex_);
    placed_.erase(adapter);
  }

 private:
  Status check_adapters(const scheduler::StepItem& item) {
    for (const AppliedAdapter& use : static_cast<const Sequence&>(*item.request).owner->adapters) {
      const std::lock_guard lock(mutex_);
      const auto placed = placed_.find(use.adapter->digest);
      if (placed == placed_.end() || !kv_.holds(placed->first, placed->second))
        return internal("a step runs without its adapter");
    }
    return {};
  }

  // Logits that depend on the sequence's KV and on this number of drafts.
  std::vector<float> logits_of(const Sequence& sequence, size_t drafts) {
    std::mt19937_64 random(DigestBuilder()
                               .add(std::span<const uint64_t>(kv_.cells_of(sequence, drafts)))
                               .finish()
                               .low);
    std::vector<float> logits(kFakeVocabulary);
    for (float& logit : logits) logit = std::uniform_real_distribution<float>(0, 8)(random);
    return logits;
  }

  void answer(const scheduler::StepItem& item, scheduler::StepOutput& output,
              grammar::StepMasks& masks) {
    const auto& sequence = static_cast<const Sequence&>(*item.request);
    output.tokens.clear();
    std::vector<float> logits = logits_of(sequence, 0);
    if (!sequence.owner->generates()) {
      output.values.assign(logits.begin(), logits.begin() + 3);
      return;
    }
    std::optional<WholeRow> whole;
    const auto row = [&](size_t right) -> LogitRow& {
      logits = logits_of(sequence, right);
      return whole.emplace(logits);
    };
    sample_tokens(item, row, masks, output);
  }

  const OnStep on_step_;
  const PrepareAhead prepare_ahead_;
  const OnRead on_read_;
  scheduler::testing::FakeRunner kv_;
  mutable std::mutex mutex_;
  std::map<Digest, std::string> folders_;
  std::map<Digest, std::vector<memory::BlockId>> placed_;  // adapters in the pool
};

}  // namespace valora::serving::testing
