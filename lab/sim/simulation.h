// Runs arrivals through the scheduler, a policy and the memory pool in simulated time: the code
// used in serving, with a cost function instead of a model. Deterministic.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/sim/simulated_executor.h"
#include "memory/pool.h"
#include "memory/simulated_mover.h"
#include "scheduler/step_loop.h"

namespace valora::sim {

struct SimulationConfig {
  scheduler::SchedulerConfig scheduler;
  std::string policy = "unmerged";  // a name known to bench::make_compared_policy()
  scheduler::PolicyOptions policy_options;
  memory::PoolConfig pool;
  memory::LinkCost link;
  memory::SimulatedMover::Fate fate;    // outcomes of moves; empty: all succeed
  std::vector<int32_t> adapter_blocks;  // by AdapterId; others need none
  std::vector<int> adapter_ranks;       // by AdapterId; others have kDefaultRank
  static constexpr int kDefaultRank = 16;
};

struct Arrival {
  // Time since the start of the simulation; with `after`, since the end of that arrival's answer.
  Duration at{};
  std::vector<int32_t> prompt;  // token ids, 0 or above
  int answer_tokens = 1;        // tokens to generate; at least 1
  scheduler::AdapterId adapter = scheduler::kBaseModel;
  // The prompt token from which the adapter acts: above 0 for activated LoRA, which is never merged
  // and shares the KV of earlier tokens with the base model.
  int acts_from = 0;
  int priority = 0;  // lower runs first
  scheduler::TenantId tenant = 0;
  double share = 1;        // weight of the tenant
  Duration ttft_target{};  // latency target of the first token; zero: none
  // The previous turn of the conversation, whose prompt and answer this prompt repeats before the
  // new question.
  std::optional<size_t> previous;
  // Arrives only after the answer to this earlier arrival has ended, and fails if that failed.
  std::optional<size_t> after;
  // Pictures before its text. In simulated time they come first among the prompt's new tokens; in
  // an engine the model determines how many tokens they have.
  int pictures = 0;
  int picture_tokens = 0;  // total of all its pictures
  // The earlier arrival that has the same pictures; absent: its pictures are its own.
  std::optional<size_t> pictures_of;
  // Determines the simulated answer (answer_token()). 0: the index of the arrival plus 1.
  scheduler::RequestId id = 0;
};

// The outcome of one arrival. Times are since the start of the simulation.
struct Answer {
  scheduler::RequestId id = 0;
  std::optional<Error> refused;  // the queue was full, it was too long, or its adapter failed
  Duration arrival{}, first_scheduled{}, first_token{}, end{};
  Duration adapter_wait{}, kv_wait{};  // spent loading adapters and KV into the pool
  int cached_tokens = 0;
  int preemptions = 0;
};

struct SimulationReport {
  std::vector<Answer> answers;  // in the order of the arrivals
  Duration end{};               // when the last request ended
  uint64_t steps = 0;
  uint64_t switches = 0, merges = 0;  // changes of the weights in use
  scheduler::SchedulerStats scheduler;
  memory::PoolStats pool;
};

// Called after each step, even one without work, for example to check invariants.
using AfterStep =
    std::function<void(const scheduler::Scheduler&, const scheduler::StepReport&, Duration now)>;

// Runs all arrivals until every request has ended. kInvalidArgument: an unknown policy, an empty
// pool, or an arrival without prompt or answer, or whose adapter acts from behind its prompt on.
Result<SimulationReport> simulate(const SimulationConfig& config, std::vector<Arrival> arrivals,
                                  StepCost cost, const AfterStep& after_step = {});

}  // namespace valora::sim
