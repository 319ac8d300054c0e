#include "engine/ranks/rank_runner.h"

#include "engine/adapters/adapter_tensors.h"
#include "engine/runner/flat_tensors.h"

namespace valora {

using serving::AdapterRows;
using serving::BatchMessage;
using serving::ScoredRows;

RankRunner::RankRunner(int rank, const models::Model& model, ops::KvArena arena,
                       std::optional<ops::StateArena> states, at::Device device,
                       std::unique_ptr<ModeSwitcher> switcher, Communicator* communicator,
                       const StepLimits& limits)
    : rank_(rank),
      model_(model),
      arena_(std::move(arena)),
      states_(std::move(states)),
      device_(device),
      switcher_(std::move(switcher)),
      graphs_(StepGraphs::make(model, arena_, states_ ? &*states_ : nullptr, limits, rank,
                               communicator)),
      launched_(rank > 0 ? ops::launched_work(device) : nullptr),
      head_module_(model.spec().modules.first_of(adapters::ModuleKind::kHead)) {}

void RankRunner::forget_merged() {
  if (switcher_) switcher_->forget();
}

// Tokens, positions and lengths are in host memory.
models::Batch RankRunner::batch_of(const BatchMessage& message, const VisualEncoder& visuals) {
  models::Batch batch = flat_batch(message.tokens);
  batch.kv = &arena_;
  if (states_) batch.states = &*states_;
  TORCH_CHECK(switcher_ || !message.merged, "the weights of this model are never merged");
  batch.adaptation.merged = switcher_ ? switcher_->use(message.merged) : nullptr;
  ops::LoraBatch& lora = batch.adaptation.lora;
  for (const AdapterRows& rows : message.difference)
    lora.add(rows.begin, rows.end, weights_of(*rows.adapter, rank_), rows.coefficient);
  for (const AdapterRows& rows : message.uses) {
    if (rows.adapter->on_decoder)
      lora.add_outputs(rows.begin, rows.end, weights_of(*rows.adapter, rank_), rows.coefficient);
    if (vocabulary_of(*rows.adapter).on_embedding())
      batch.vocabulary.push_back(
          {rows.begin, rows.end, &vocabulary_of(*rows.adapter), rows.coefficient});
  }
  // Visual embeddings are on rank 0's device, which embeds the tokens; other ranks need them for
  // later layers only.
  const bool later = rank_ > 0 && model_.spec().visual_levels > 0;
  for (const serving::VisualUse& use : message.visual) {
    const at::Tensor rows = visuals.get(use.key).narrow(0, use.first_row, use.rows);
    batch.visual.push_back({use.token, later ? rows.to(device_) : rows});
  }
  return batch;
}

at::Tensor RankRunner::forward(const BatchMessage& message, const VisualEncoder& visuals) {
  if (launched_) launched_->wait();  // for the previous step
  models::Batch batch = batch_of(message, visuals);
  if (graphs_)
    if (const auto hidden = graphs_->forward(batch)) return hidden_ = *hidden;
  to_device(batch, device_);
  return hidden_ = model_.forward(batch);
}

void RankRunner::expect_adapter(const serving::LoadedAdapter& adapter) {
  if (graphs_) graphs_->expect_adapter(weights_of(adapter, rank_));
}

bool RankRunner::capture_ahead(bool first) {
  if (!graphs_) return false;
  if (launched_) launched_->wait();  // for the previous step
  return graphs_->capture_ahead(first);
}

models::HeadAdaptation RankRunner::heads_of(const ScoredRows& scored) const {
  models::HeadAdaptation heads;
  if (head_module_ < 0) return heads;
  for (const AdapterRows& rows : scored.adapters) {
    const ops::AdapterWeights& weights = weights_of(*rows.adapter, rank_);
    if (rows.coefficient == 0) continue;
    if (weights.touches(head_module_))
      heads.lora.add(rows.begin, rows.end, weights, rows.coefficient);
    if (weights.output(head_module_))
      heads.lora.add_outputs(rows.begin, rows.end, weights, rows.coefficient);
    const ops::VocabularyWeights& vocabulary = vocabulary_of(*rows.adapter);
    if (!vocabulary.on_head()) continue;
    auto& uses = heads.vocabulary;
    if (!uses.empty() && uses.back().weights == &vocabulary && uses.back().end == rows.begin &&
        uses.back().coefficient == rows.coefficient)
      uses.back().end = rows.end;
    else
      uses.push_back({rows.begin, rows.end, &vocabulary, rows.coefficient});
  }
  return heads;
}

at::Tensor RankRunner::logits(int64_t first, int64_t count, const ScoredRows& scored) const {
  const at::Tensor hidden = hidden_.narrow(0, first, count);
  // If every row is scored, they are in order.
  const bool all = static_cast<int64_t>(scored.rows.size()) == hidden.size(0);
  const at::Tensor states =
      all ? hidden : hidden.index_select(0, at::tensor(scored.rows, at::kLong).to(device_));
  const at::Tensor logits = model_.logits(states, heads_of(scored));
  return logits.defined() ? logits.contiguous() : logits;
}

}  // namespace valora
