#include "lab/sim/simulation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lab/policies/policies.h"

namespace valora::sim {
namespace {

using scheduler::Request;

struct SimulatedRequest final : Request {
  size_t index = 0;  // index of its arrival
  int answer_tokens = 0;
};

class Simulation final : scheduler::StepListener {
 public:
  Simulation(const SimulationConfig& config, std::vector<Arrival> arrivals,
             std::unique_ptr<scheduler::Policy> policy, StepCost cost)
      : arrivals_(std::move(arrivals)),
        adapter_blocks_(config.adapter_blocks),
        adapter_ranks_(config.adapter_ranks),
        mover_(config.link, clock_, config.fate),
        pool_(config.pool, mover_, clock_),
        scheduler_(config.scheduler, pool_, std::move(policy), clock_),
        executor_(std::move(cost), clock_) {
    report_.answers.resize(arrivals_.size());
    followers_.resize(arrivals_.size());
    for (size_t i = 0; i < arrivals_.size(); ++i) {
      if (const auto& after = arrivals_[i].after)
        followers_[*after].push_back(i);
      else
        coming_.emplace(arrivals_[i].at, i);
    }
  }

  Result<SimulationReport> run(const AfterStep& after_step) {
    while (!coming_.empty() || !scheduler_.idle()) {
      if (scheduler_.idle()) wait_until(coming_.begin()->first);
      while (!coming_.empty() && coming_.begin()->first <= now()) arrive_next();
      if (scheduler_.idle()) continue;  // all new requests were refused
      const scheduler::StepReport step = loop_.step();
      if (step.sequences > 0)
        count(step.shape);
      else if (step.waits_for_copies)
        wait_for_copies();
      else if (!coming_.empty())
        wait_until(coming_.begin()->first);
      else if (!scheduler_.idle())
        return internal("the policy lets none of the remaining requests run");
      if (after_step) after_step(scheduler_, step, now());
    }
    report_.end = now();
    report_.scheduler = scheduler_.stats();
    report_.pool = pool_.stats();
    return std::move(report_);
  }

 private:
  void count(const scheduler::StepShape& shape) {
    ++report_.steps;
    report_.switches += shape.switches ? 1 : 0;
    report_.merges += shape.merges ? 1 : 0;
  }

  Duration now() const { return clock_.now() - TimePoint{}; }
  void wait_until(Duration time) {
    if (time > now()) clock_.advance(time - now());
  }

  void wait_for_copies() {
    Duration until = mover_.next_end().value_or(clock_.now()) - TimePoint{};
    if (!coming_.empty()) until = std::min(until, coming_.begin()->first);
    wait_until(until);
  }

  int32_t blocks_of(scheduler::AdapterId adapter) const {
    const auto index = static_cast<size_t>(adapter);
    return adapter >= 0 && index < adapter_blocks_.size() ? adapter_blocks_[index] : 0;
  }

  int rank_of(scheduler::AdapterId adapter) const {
    const auto index = static_cast<size_t>(adapter);
    return index < adapter_ranks_.size() ? adapter_ranks_[index] : SimulationConfig::kDefaultRank;
  }

  void arrive_next() {
    const auto [at, index] = *coming_.begin();
    coming_.erase(coming_.begin());
    arrivals_[index].at = at;
    arrive(index);
  }

  void refuse(size_t index, const Error& error) {
    report_.answers[index].refused = error;
    for (const size_t follower : followers_[index])
      refuse(follower, {ErrorCode::kCancelled, "the request before it failed", {}});
  }

  void arrive(size_t index) {
    Arrival& arrival = arrivals_[index];
    Answer& answer = report_.answers[index];
    auto request = std::make_shared<SimulatedRequest>();
    request->id = answer.id = arrival.id > 0 ? arrival.id : index + 1;
    request->arrival = TimePoint{} + arrival.at;
    request->adapter = arrival.adapter;
    request->priority = arrival.priority;
    request->tenant = arrival.tenant;
    request->share = arrival.share;
    request->tolerance = arrival.ttft_target;
    if (arrival.ttft_target > Duration{})
      request->deadline = request->arrival + arrival.ttft_target;
    request->tokens = std::move(arrival.prompt);
    request->prompt_tokens = static_cast<int>(request->tokens.size());
    if (arrival.adapter != scheduler::kBaseModel) set_adapter(arrival, *request);
    request->index = index;
    request->answer_tokens = arrival.answer_tokens;
    answer.arrival = arrival.at;
    if (const Status status = add(request); !status.ok()) refuse(index, status.error());
  }

  // As serving does for a request with one adapter.
  void set_adapter(const Arrival& arrival, SimulatedRequest& request) const {
    const Digest digest = DigestBuilder().add(arrival.adapter).finish();
    const memory::AdapterNeed need{digest, blocks_of(arrival.adapter)};
    request.decoder_adapters = {{arrival.adapter, rank_of(arrival.adapter), 1}};
    request.identity.adapters = {need};
    if (arrival.acts_from > 0) {
      request.identity.late = digest;
      request.identity.late_from = arrival.acts_from;
      return;
    }
    request.identity.adapter = digest;
    request.merge = arrival.adapter;
    request.merge_need = need;
  }

  // The scheduler requires that a sequence fits into the KV cache to its end. The engine ensures
  // this by capping the model length; here, longer requests are refused.
  Status add(const std::shared_ptr<SimulatedRequest>& request) {
    const int64_t needed = int64_t{request->prompt_tokens} + request->answer_tokens;
    const int64_t room = pool_.max_tokens(request->identity.adapters);
    if (needed > room)
      return invalid("the request needs " + std::to_string(needed) +
                     " tokens, but the pool holds " + std::to_string(room));
    return scheduler_.add(request);
  }

  void on_planned(const scheduler::StepPlan&) override {}

  void on_output(scheduler::StepOutput& output) override {
    auto& request = static_cast<SimulatedRequest&>(*output.request);
    Answer& answer = report_.answers[request.index];
    request.tokens.push_back(output.tokens.front().id);
    if (request.generated_tokens() == 1) {
      answer.first_token = now();
      request.tolerance = {};  // later tokens have no target
    }
    if (request.generated_tokens() < request.answer_tokens) return;
    answer.first_scheduled = request.first_scheduled - TimePoint{};
    answer.end = now();
    answer.adapter_wait = request.adapter_wait;
    answer.kv_wait = request.kv_wait;
    answer.cached_tokens = request.cached_tokens;
    answer.preemptions = request.preemptions;
    for (const size_t follower : followers_[request.index])
      coming_.emplace(now() + arrivals_[follower].at, follower);
    scheduler_.finish(request);
  }

  void on_failed(Request& request, const Error& error) override {
    refuse(static_cast<SimulatedRequest&>(request).index, error);
    scheduler_.finish(request);
  }

  std::vector<Arrival> arrivals_;
  std::set<std::pair<Duration, size_t>> coming_;  // arrivals whose time is known
  std::vector<std::vector<size_t>> followers_;  // by arrival: the arrivals that wait for its answer
  SimulatedClock clock_;
  std::vector<int32_t> adapter_blocks_;
  std::vector<int> adapter_ranks_;
  memory::SimulatedMover mover_;
  memory::Pool pool_;
  scheduler::Scheduler scheduler_;
  SimulatedExecutor executor_;
  scheduler::StepLoop loop_{scheduler_, executor_, *this, clock_};
  SimulationReport report_;
};

Status check(const SimulationConfig& config, const std::vector<Arrival>& arrivals) {
  if (config.pool.blocks < 1)
    return invalid("a simulation needs at least one pool block", "blocks");
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (arrivals[i].prompt.empty() || arrivals[i].answer_tokens < 1)
      return invalid("arrival " + std::to_string(i) + " has no prompt or no answer", "arrivals");
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (arrivals[i].acts_from < 0 ||
        std::cmp_greater_equal(arrivals[i].acts_from, arrivals[i].prompt.size()))
      return invalid("the adapter of arrival " + std::to_string(i) + " acts outside its prompt",
                     "arrivals");
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (arrivals[i].after && *arrivals[i].after >= i)
      return invalid(
          "arrival " + std::to_string(i) + " depends on an arrival that is not before it",
          "arrivals");
  return {};
}

}  // namespace

Result<SimulationReport> simulate(const SimulationConfig& config, std::vector<Arrival> arrivals,
                                  StepCost cost, const AfterStep& after_step) {
  VALORA_CHECK(check(config, arrivals));
  VALORA_TRY(policy, bench::make_compared_policy(config.policy, config.policy_options));
  return Simulation(config, std::move(arrivals), std::move(policy), std::move(cost))
      .run(after_step);
}

}  // namespace valora::sim
