// The ranks of the model as one: each runs the same messages, on a thread of its own. Used by the
// engine thread only, which is rank 0's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/core_sets.h"
#include "base/rank_threads.h"
#include "engine/rank_runner.h"

namespace valora {

class RankGroup {
 public:
  // ranks: at least one. communicator: theirs; null with one rank. cores: that their threads are
  // bound to, the engine thread with rank 0; empty: none.
  RankGroup(std::vector<std::unique_ptr<RankRunner>> ranks,
            std::unique_ptr<Communicator> communicator, std::vector<CoreSet> cores = {});

  // As those of RankRunner. With several ranks, one that fails is LostRank: what the others have
  // done by then is not known, so no step can run any more.
  at::Tensor forward(const serving::BatchMessage& message, const VisualEncoder& visuals);
  // hidden: of forward(), or rows of it.
  at::Tensor logits(const at::Tensor& hidden, const serving::ScoredRows& scored);
  void forget_merged();

  // Ends the compute threads of all ranks while they are idle (ops/parallel.h).
  void release_threads();

  int count() const { return static_cast<int>(ranks_.size()); }
  ModeStats mode_stats() const { return ranks_[0]->mode_stats(); }
  Communicator::Stats collectives() const {
    return communicator_ ? communicator_->stats() : Communicator::Stats{};
  }

 private:
  void bind_threads();
  void on_all(const std::function<void(RankRunner&, int rank)>& body);

  std::vector<std::unique_ptr<RankRunner>> ranks_;
  std::unique_ptr<Communicator> communicator_;
  std::optional<RankThreads> threads_;
  std::vector<CoreSet> cores_;
  bool bound_ = false;
};

}  // namespace valora
