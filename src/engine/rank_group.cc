#include "engine/rank_group.h"

#include <c10/core/InferenceMode.h>

#include <utility>

#include "ops/parallel.h"

namespace valora {

RankGroup::RankGroup(std::vector<std::unique_ptr<RankRunner>> ranks,
                     std::unique_ptr<Communicator> communicator)
    : ranks_(std::move(ranks)), communicator_(std::move(communicator)) {
  if (communicator_) threads_.emplace(*communicator_);
}

void RankGroup::on_all(const std::function<void(RankRunner&, int rank)>& body) {
  if (!threads_) return body(*ranks_[0], 0);
  threads_->run([&](int rank) {
    const c10::InferenceMode no_gradients;  // of each thread
    body(*ranks_[static_cast<size_t>(rank)], rank);
  });
}

at::Tensor RankGroup::forward(const serving::BatchMessage& message, const VisualEncoder& visuals) {
  at::Tensor hidden;
  on_all([&](RankRunner& runner, int rank) {
    const at::Tensor own = runner.forward(message, visuals);
    if (rank == 0) hidden = own;
  });
  return hidden;
}

// The hidden states of all ranks have the same bits.
at::Tensor RankGroup::logits(const at::Tensor& hidden, const serving::ScoredRows& scored) {
  at::Tensor logits;
  on_all([&](RankRunner& runner, int rank) {
    const at::Tensor own = runner.logits(hidden, scored);
    if (rank == 0) logits = own;
  });
  return logits;
}

void RankGroup::forget_merged() {
  on_all([](RankRunner& runner, int) { runner.forget_merged(); });
}

void RankGroup::release_threads() {
  if (communicator_ && communicator_->failure()) return;
  on_all([](RankRunner&, int) { ops::release_threads(); });
}

}  // namespace valora
