#include "engine/ranks/rank_group.h"

#include <c10/core/InferenceMode.h>

#include <utility>

#include "base/log/log.h"
#include "ops/device/devices.h"
#include "ops/device/parallel.h"

namespace valora {

RankGroup::RankGroup(std::vector<std::unique_ptr<RankRunner>> ranks,
                     std::unique_ptr<Communicator> communicator, std::vector<CoreSet> cores)
    : ranks_(std::move(ranks)), communicator_(std::move(communicator)), cores_(std::move(cores)) {
  if (!communicator_) return;
  threads_.emplace(*communicator_);
  if (!ranks_[0]->device().is_cpu()) watch_.emplace(*communicator_, StepWatch::Settings{});
}

std::unique_ptr<StepWatch::Step> RankGroup::watched() {
  return std::make_unique<StepWatch::Step>(watch_ ? &*watch_ : nullptr);
}

void RankGroup::check() const {
  if (!communicator_) return;
  if (const auto failure = communicator_->failure()) throw RankLostError(*failure);
}

// Called before the ranks' threads create compute threads, which inherit the binding.
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
    const c10::InferenceMode no_gradients;  // per thread
    RankRunner& runner = *ranks_[static_cast<size_t>(rank)];
    const ops::OnDevice current(runner.device());
    body(runner, rank);
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

at::Tensor RankGroup::logits(int64_t first, int64_t count, const serving::ScoredRows& scored) {
  at::Tensor logits;
  on_all([&](RankRunner& runner, int rank) {
    const at::Tensor own = runner.logits(first, count, scored);
    if (rank == 0) logits = own;
  });
  return logits;
}

void RankGroup::forget_merged() {
  on_all([](RankRunner& runner, int) { runner.forget_merged(); });
}

void RankGroup::expect_adapter(const serving::LoadedAdapter& adapter) {
  if (!ranks_[0]->captures_steps()) return;
  on_all([&](RankRunner& runner, int) { runner.expect_adapter(adapter); });
}

bool RankGroup::capture_ahead(bool first) {
  if (!ranks_[0]->captures_steps()) return false;
  bool more = false;
  const Communicator::Stats counted = collectives();
  on_all([&](RankRunner& runner, int rank) {
    const bool own = runner.capture_ahead(first);  // the same on all ranks
    if (rank == 0) more = own;
  });
  if (communicator_) ahead_ = communicator_->stats() - counted;
  return more;
}

Communicator::Stats RankGroup::collectives() const {
  return communicator_ ? communicator_->stats() - ahead_ : Communicator::Stats{};
}

void RankGroup::release_threads() {
  if (communicator_ && communicator_->failure()) return;
  on_all([](RankRunner&, int) { ops::release_threads(); });
}

}  // namespace valora
