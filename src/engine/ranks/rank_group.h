// The ranks of a model as one unit: each runs the same messages on its own thread. Used by the
// engine thread only, which is rank 0's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/machine/core_sets.h"
#include "base/threads/rank_threads.h"
#include "base/threads/step_watch.h"
#include "engine/ranks/rank_runner.h"

namespace valora {

class RankGroup {
 public:
  // ranks: at least one. communicator: the ranks'; null with one rank. cores: the CPUs to bind each
  // rank's thread to, the engine thread for rank 0; empty: no binding.
  RankGroup(std::vector<std::unique_ptr<RankRunner>> ranks,
            std::unique_ptr<Communicator> communicator, std::vector<CoreSet> cores = {});

  // As in RankRunner. With several ranks, a failure of one throws RankLostError: the state of the
  // others is then unknown, so no further step can run.
  at::Tensor forward(const serving::BatchMessage& message, const VisualEncoder& visuals);
  // scored: rows among the `count` rows of the last forward() that start at `first`.
  at::Tensor logits(int64_t first, int64_t count, const serving::ScoredRows& scored);
  void forget_merged();
  // As in RankRunner, on all ranks. A failure of one is as in forward().
  void expect_adapter(const serving::LoadedAdapter& adapter);
  bool capture_ahead(bool first);
  GraphStats graph_stats() const { return ranks_[0]->graph_stats(); }
  // Throws RankLostError if a rank has failed. Results of a step on GPUs are valid if no rank has
  // failed by the end of the step.
  void check() const;
  // Returns an object whose lifetime marks a step. A step that hangs on GPUs is ended.
  std::unique_ptr<StepWatch::Step> watched();

  // Ends the compute threads of all ranks while idle (ops/device/parallel.h).
  void release_threads();

  int count() const { return static_cast<int>(ranks_.size()); }
  ModeStats mode_stats() const { return ranks_[0]->mode_stats(); }
  // Those of steps, without those of capture_ahead().
  Communicator::Stats collectives() const;

 private:
  void bind_threads();
  void on_all(const std::function<void(RankRunner&, int rank)>& body);

  std::vector<std::unique_ptr<RankRunner>> ranks_;
  std::unique_ptr<Communicator> communicator_;
  std::optional<RankThreads> threads_;
  std::optional<StepWatch> watch_;  // GPUs only: on CPUs collectives detect missing ranks
  Communicator::Stats ahead_;       // the collectives of capture_ahead()
  std::vector<CoreSet> cores_;
  bool bound_ = false;
};

}  // namespace valora
