#include "engine/rank_group.h"

#include <c10/core/InferenceMode.h>

#include <utility>

#include "base/log.h"
#include "ops/parallel.h"

namespace valora {

RankGroup::RankGroup(std::vector<std::unique_ptr<RankRunner>> ranks,
                     std::unique_ptr<Communicator> communicator, std::vector<CoreSet> cores)
    : ranks_(std::move(ranks)), communicator_(std::move(communicator)), cores_(std::move(cores)) {
  if (communicator_) threads_.emplace(*communicator_);
}

// Before the threads of the ranks make any for their computations, which are then bound as well.
void RankGroup::bind_threads() {
  if (std::exchange(bound_, true) || cores_.empty()) return;
  const auto bind = [&](int rank) {
    const CoreSet& cores = cores_[static_cast<size_t>(rank)];
    if (!bind_thread(cores)) spdlog::warn("rank {} is not bound to CPUs {}", rank, to_text(cores));
  };
  if (threads_)
    threads_->run(bind);
  else
    bind(0);
}

void RankGroup::on_all(const std::function<void(RankRunner&, int rank)>& body) {
  bind_threads();
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
