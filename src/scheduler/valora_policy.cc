// VaLoRA's Algorithm 1 (§4.4.3) over measured costs. The algorithm says which modes a step may
// take; the costs say which of these yields the most tokens per second.
//
//  - A request starves when its credit exceeds θ. Its credit is the time that it waited, plus the
//    time of a step in the current mode (with a latency target also that of its prompt), plus, if
//    it cannot run in that mode, the time to change it. Starving requests come first, those
//    farthest beyond θ before others. A request with a latency target has waited since its last
//    step or its arrival. Any other one has waited while merged mode left it out, in total: so the
//    modes delay it by at most θ and one step, while a queue that is longer than the machine can
//    serve does not forbid merged mode.
//  - Candidates: all requests unmerged; all, with an adapter merged (mixture); only the requests of
//    that adapter, merged, if that yields merged_gain times as much. The adapter is the one that
//    most requests are of, if that is more than merged_share of a full batch, or the one whose
//    merged weights exist. Merged mode is out of the question while a request that it leaves out
//    starves.
//  - A step is worth its output tokens, and those that would fit into the time of its prompts: this
//    time must be spent at some step, so putting a prompt off gains nothing.
//  - Candidates whose weights exist cost nothing to take. Others must first be worth a merge: the
//    seconds that they would have saved since they became the best add up, and the merge begins
//    when the sum reaches its cost. So a load whose best weights change all the time never merges.
//    While more than starving_share of a full batch starves, no merge begins.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "scheduler/fcfs_order.h"
#include "scheduler/step_batch.h"

namespace valora::scheduler {
namespace {

// What remains per step of what a target would have saved, once it is not the best any more.
constexpr double kFades = 0.9;

struct Candidate {
  StepMode mode;
  WeightsChange change;
  StepBatch batch;
  double seconds = 0;  // of the step, without writing weights
  double writing = 0;  // seconds of writing weights

  double rate = 0;  // what the step is worth per second, in output tokens
};

// How far each request is beyond its tolerance.
class Credits {
 public:
  Credits(const PolicyState& state, TimePoint now, Duration tolerance, Duration step,
          Duration change)
      : state_(state), now_(now), tolerance_(tolerance), step_(step), change_(change) {}

  // Positive: it starves.
  Duration beyond(RequestIndex i) const {
    const Request& request = state_[i];
    const bool runs = state_.weights.merged == kBaseModel || request.merge == state_.weights.merged;
    const Duration change = runs ? Duration{} : change_;
    if (request.tolerance == Duration{}) return request.passed + step_ + change - tolerance_;
    const Duration waited = now_ - std::max(request.arrival, request.last_scheduled);
    return waited + execution(request) + change - request.tolerance;
  }

 private:
  // Until its next token: a prompt may take several steps.
  Duration execution(const Request& request) const {
    const int tokens = request.remaining_tokens();
    if (tokens <= 1) return step_;
    return std::max(step_, from_seconds(state_.costs->running_seconds({.prefill_tokens = tokens})));
  }

  const PolicyState& state_;
  const TimePoint now_;
  const Duration tolerance_, step_, change_;
};

class ValoraPolicy final : public Policy {
 public:
  explicit ValoraPolicy(const PolicyOptions& options) : options_(options) {}
  std::string name() const override { return "valora"; }
  bool merges() const override { return true; }

  PolicyPlan plan(const PolicyState& state, TimePoint now) const override {
    PolicyPlan plan{.order = fcfs_order(state), .memory = state.memory};
    if (plan.order.empty() || !state.costs || !state.costs->known()) return plan;
    const std::vector<RequestIndex> starving = take_starving(state, plan.order, now);
    const std::vector<Candidate> candidates = candidates_of(state, plan.order, starving);
    if (candidates.empty()) return plan;  // no request has room: the scheduler decides
    const bool may_write =
        static_cast<double>(starving.size()) <= options_.starving_share * full_batch(state);
    const Candidate& chosen = choose(candidates, may_write, plan.memory);
    plan.mode = chosen.mode.mode;
    plan.merged = chosen.mode.merged;
    if (plan.mode == Mode::kMerged) leave_out_others(state, plan);
    return plan;
  }

 private:
  // Those that would have had a place in the step are passed over.
  static void leave_out_others(const PolicyState& state, PolicyPlan& plan) {
    const auto other = [&](RequestIndex i) { return state[i].merge != plan.merged; };
    plan.passed = taken_of(state, plan.order, {});
    std::erase_if(plan.passed, [&](RequestIndex i) { return !other(i); });
    plan.order = merged_order(state, plan.order, plan.merged);
  }

  static int full_batch(const PolicyState& state) {
    return std::min<int>(state.max_sequences, static_cast<int>(state.size()));
  }

  // The starving requests, those farthest beyond their tolerance first. Moves them to the front of
  // the order, but decodes stay before prefills: a decode takes one token of the step, a prefill
  // may take them all. They leave at least half of the step's sequences to starving prefills. If
  // several tenants wait, waiting requests keep their order, or one that floods the queue with
  // requests that starve would go before all others.
  std::vector<RequestIndex> take_starving(const PolicyState& state,
                                          std::vector<RequestIndex>& order, TimePoint now) const {
    const StepBatch now_running = batch_of(state, order, {Mode::kUnmerged, kBaseModel});
    const Duration step = from_seconds(state.costs->running_seconds(now_running.shape));
    const Duration change = from_seconds(state.costs->weights_seconds({.switches = true}));
    const Credits credits(state, now, options_.tolerance, step, change);
    std::vector<std::pair<Duration, RequestIndex>> decodes, others;
    std::vector<RequestIndex> fresh_decodes, rest, starving;
    for (const RequestIndex i : order) {
      const bool waits = i >= state.running.size();
      const bool decode = !waits && state[i].remaining_tokens() <= 1;
      const Duration beyond = credits.beyond(i);
      const bool starves = beyond > Duration{};
      if (starves) starving.push_back(i);
      if (decode && !starves)
        fresh_decodes.push_back(i);
      else if (starves || (waits && state.contended))
        (decode ? decodes : others).emplace_back(beyond, i);
      else
        rest.push_back(i);
    }
    const auto farthest_first = [&](const auto& a, const auto& b) {
      const int pa = state[a.second].priority, pb = state[b.second].priority;
      return pa != pb ? pa < pb : a.first > b.first;
    };
    std::ranges::stable_sort(decodes, farthest_first);
    if (!state.contended) std::ranges::stable_sort(others, farthest_first);
    const size_t reserved = std::min<size_t>(starving.size() - decodes.size(),
                                             static_cast<size_t>(state.max_sequences) / 2);
    const auto limit = static_cast<size_t>(state.max_sequences) - reserved;
    order.clear();
    for (const auto& [beyond, i] : decodes) order.push_back(i);
    const size_t before = std::min(fresh_decodes.size(), limit - std::min(limit, order.size()));
    order.insert(order.end(), fresh_decodes.begin(),
                 fresh_decodes.begin() + static_cast<ptrdiff_t>(before));
    for (const auto& [beyond, i] : others) order.push_back(i);
    order.insert(order.end(), fresh_decodes.begin() + static_cast<ptrdiff_t>(before),
                 fresh_decodes.end());
    order.insert(order.end(), rest.begin(), rest.end());
    return starving;
  }

  // The part of a step that prompts take.
  static double prompt_seconds(const LiveCosts& costs, const StepShape& shape) {
    return costs.running_seconds(
               {.prefill_tokens = shape.prefill_tokens, .prefill_context = shape.prefill_context}) -
           costs.running_seconds({});
  }

  // R_merge of the algorithm: the adapter of the most requests, if it is worth a merge.
  std::optional<AdapterId> commonest(const PolicyState& state,
                                     const std::vector<RequestIndex>& order) const {
    std::unordered_map<AdapterId, int> counts;
    std::optional<AdapterId> best;
    int most = 0;
    for (const RequestIndex i : order) {
      const AdapterId adapter = state[i].merge;
      if (adapter == kBaseModel) continue;
      if (const int count = ++counts[adapter]; count > most) best = adapter, most = count;
    }
    return most > options_.merged_share * full_batch(state) ? best : std::nullopt;
  }

  std::vector<Candidate> candidates_of(const PolicyState& state,
                                       const std::vector<RequestIndex>& order,
                                       const std::vector<RequestIndex>& starving) const {
    std::vector<Candidate> candidates;
    double token_seconds = 0;  // per output token, unmerged
    const auto consider = [&](StepMode mode) {
      Candidate c{.mode = mode,
                  .change = change_to(mode.merged, state.weights),
                  .batch = batch_of(state, order, mode)};
      if (c.batch.requests == 0) return;
      c.seconds = state.costs->running_seconds(c.batch.shape);
      const double prompts = prompt_seconds(*state.costs, c.batch.shape);
      if (const int decodes = c.batch.shape.decode_tokens; candidates.empty())
        token_seconds = decodes > 0 ? (c.seconds - prompts) / decodes : c.seconds / c.batch.yields;
      c.rate = (c.batch.yields + prompts / token_seconds) / c.seconds;
      if (mode.mode == Mode::kMerged) c.rate /= options_.merged_gain;
      c.writing = c.change.writes() ? state.costs->weights_seconds(c.batch.shape) : 0;
      candidates.push_back(c);
    };
    consider({Mode::kUnmerged, kBaseModel});
    const auto merging = [&](AdapterId adapter) {
      consider({Mode::kMixture, adapter});
      if (std::ranges::all_of(starving, [&](RequestIndex i) { return state[i].merge == adapter; }))
        consider({Mode::kMerged, adapter});
    };
    const AdapterId held = state.weights.held;
    const bool runs = held != kBaseModel && std::ranges::any_of(order, [&](RequestIndex i) {
                        return state[i].merge == held;
                      });
    if (runs) merging(held);
    if (const auto adapter = commonest(state, order); adapter && adapter != held) merging(*adapter);
    return candidates;
  }

  static const Candidate& choose(const std::vector<Candidate>& candidates, bool may_write,
                                 PolicyMemory& memory) {
    // The best of those that cost the least to take, mostly nothing.
    const Candidate* cheap = &candidates.front();
    const Candidate* best = &candidates.front();
    for (const Candidate& c : candidates) {
      if (c.writing < cheap->writing || (c.writing == cheap->writing && c.rate > cheap->rate))
        cheap = &c;
      if (c.rate > best->rate) best = &c;
    }
    if (best->rate <= cheap->rate) {
      memory.saved *= kFades;
      return *cheap;
    }
    if (memory.target != best->mode.merged) memory = {.target = best->mode.merged};
    memory.saved += cheap->seconds * (1 - cheap->rate / best->rate);
    if (!may_write || memory.saved < best->writing - cheap->writing) return *cheap;
    memory = {};
    return *best;
  }

  const PolicyOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_valora_policy(const PolicyOptions& options) {
  return std::make_unique<ValoraPolicy>(options);
}

}  // namespace valora::scheduler
