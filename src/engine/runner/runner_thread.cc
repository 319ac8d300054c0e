// The runner's tasks outside of steps.
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "base/log/log.h"
#include "engine/adapters/head_logits.h"
#include "engine/runner/model_fault.h"
#include "engine/runner/runner.h"

namespace valora {
namespace {

constexpr Duration kWarmUp = std::chrono::seconds(3);

}  // namespace

void Runner::run_thread(const std::function<void()>& loop) {
  const c10::InferenceMode no_gradients;
  if (options_.adapts_threads) threads_.emplace();
  loop();
  threads_.reset();
}

void Runner::before_step() {
  if (threads_) threads_->adjust();
}

void Runner::release_threads() { ranks_->release_threads(); }

void Runner::on_idle() { visuals_.request({}); }

std::string Runner::warm_up() {
  const TimePoint begin = clock_.now();
  bool more = true;
  while (more && clock_.now() - begin < kWarmUp) more = capture_ahead(true);
  const GraphStats graphs = ranks_->graph_stats();
  if (graphs.graphs == 0) return {};
  return fmt::format(
      "{} kinds of steps were captured as CUDA graphs in {:.1f} s{}; more are while no request "
      "runs",
      graphs.graphs, seconds(clock_.now() - begin), more ? ", all the time there is at start" : "");
}

void Runner::expect_adapter(const serving::LoadedAdapter& adapter) {
  if (adapter.on_decoder) ranks_->expect_adapter(adapter);
}

bool Runner::prepare_ahead() { return capture_ahead(false); }

// A failed capture costs nothing but the capture, unless the device or a rank is lost with it.
bool Runner::capture_ahead(bool first) {
  try {
    const auto watched = ranks_->watched();
    const bool more = ranks_->capture_ahead(first);
    launched_->wait();
    ranks_->check();
    return more;
  } catch (const RankLostError&) {
    throw;
  } catch (const std::exception& e) {
    spdlog::warn("no steps are captured ahead: {}", reason_of(e));
    check_device(*launched_, e);
    return false;
  }
}

double Runner::merge_seconds() const { return ranks_->mode_stats().merge_seconds; }

void Runner::fill(EngineStats& stats) const {
  const ModeStats modes = ranks_->mode_stats();
  stats.merge_seconds = modes.merge_seconds;
  stats.mode_switches = modes.switches;
  stats.merges = modes.merges;
  const Communicator::Stats collectives = ranks_->collectives();
  const GraphStats graphs = ranks_->graph_stats();
  stats.captured_steps = graphs.graphs;
  stats.replayed_steps = graphs.replays;
  stats.collectives = collectives.collectives;
  stats.collective_bytes = collectives.bytes;
  stats.collective_seconds = collectives.seconds;
  const TensorCache& visuals = visuals_.cache();
  stats.visual_queries = visuals.queries();
  stats.visual_hits = visuals.hits();
  stats.visual_bytes = visuals.bytes();
  stats.visual_entries = visuals.entries();
  stats.visuals_encoded = visuals_.work().visuals;
  stats.visual_seconds = visuals_.work().seconds;
}

Result<std::vector<float>> Runner::probabilities(adapters::ProblemType type,
                                                 const std::vector<float>& logits) const {
  try {
    return probabilities_of(logits, type);
  } catch (const std::exception& e) {
    return model_fault("the request could not be answered", e);
  }
}

}  // namespace valora
