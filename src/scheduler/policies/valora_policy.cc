// VaLoRA's Algorithm 1 (§4.4.3) over measured costs. The algorithm determines which modes a step
// may take; the costs determine which of these yields the most tokens per second.
//
//  - A request starves when its credit exceeds θ. Its credit is the time it has waited, plus the
//    time of a step in the current mode (with a latency target, also of its prompt), plus, if it
//    cannot run in that mode, the time to change it. Starving requests come first, those farthest
//    beyond θ before others. With a latency target, a request has been waiting since its last step
//    or its arrival. Without one, only the total time for which merged mode left it out counts: so
//    modes delay it by at most θ, while neither an overloaded queue nor a step longer than θ rules
//    out merged mode.
//  - Candidates: all requests unmerged; all, with one adapter merged (mixture), unless requests of
//    others would lose accuracy by it (Request::merges_among_others); only that adapter's
//    requests, merged, if that yields merged_gain times as much. The adapter is the one with the
//    most requests, or with the most tokens of the step, if its share exceeds merged_share of a
//    full batch, or the one whose merged weights exist. Merged mode is excluded while a request it
//    leaves out starves, or would be left out for longer than θ in total after the step.
//  - A step is worth its output tokens (step_batch.h), plus the output tokens that would fit into
//    the time of its prompts: that time must be spent in some step, so delaying a prompt gains
//    nothing.
//  - Candidates whose weights exist cost at most a switch, which is part of the step. Others must
//    first earn a merge: the seconds they would have saved since they became the best add up, and
//    the merge starts when the sum reaches its cost. So a load whose best weights change constantly
//    never merges. While more than starving_share of a full batch starves, a merge must save a
//    multiple of its cost.
#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "scheduler/policies/policy.h"
#include "scheduler/policies/step_batch.h"

namespace valora::scheduler {
namespace {

// Decay per step of a target's savings while it is no longer the best.
constexpr double kFades = 0.9;
// Multiple of its cost that a merge must save while many requests starve: it delays them further,
// but if targets are unreachable, all requests starve all the time.
constexpr double kWhileStarving = 4;

struct Candidate {
  StepMode mode;
  WeightsChange change;
  StepBatch batch;
  double seconds = 0;  // the step, with a switch to these weights, but without writing them
  // Seconds to write the weights, and to write the overwritten ones back if requests will need
  // them.
  double writing = 0;
  double rate = 0;  // value of the step in output tokens per second
};

class ValoraPolicy final : public Policy {
 public:
  explicit ValoraPolicy(const PolicyOptions& options) : options_(options) {}
  std::string name() const override { return "valora"; }
  bool merges() const override { return true; }
  bool compares_costs() const override { return true; }

  PolicyPlan plan(const PolicyState& state, TimePoint now) const override {
    PolicyPlan plan{.order = fcfs_order(state), .memory = state.memory};
    if (plan.order.empty() || !state.costs || !state.costs->known()) return plan;
    const std::vector<RequestIndex> starving =
        take_starving(state, plan.order, options_.tolerance, now);
    const std::vector<StepPart> parts = parts_of(state, plan.order);
    const std::vector<Candidate> candidates = candidates_of(state, plan.order, parts, starving);
    if (candidates.empty()) return plan;  // no request has room: the scheduler decides
    const bool many_starve =
        static_cast<double>(starving.size()) > options_.starving_share * full_batch(state);
    const Candidate& chosen = choose(candidates, many_starve ? kWhileStarving : 1, plan.memory);
    plan.mode = chosen.mode.mode;
    plan.merged = chosen.mode.merged;
    if (plan.mode == Mode::kMerged) leave_out_others(state, parts, plan);
    return plan;
  }

 private:
  // Requests that would have had a place in the step count as passed.
  static void leave_out_others(const PolicyState& state, const std::vector<StepPart>& parts,
                               PolicyPlan& plan) {
    for (const auto& [i, tokens] : parts)
      if (state[i].merge != plan.merged) plan.passed.push_back(i);
    plan.order = merged_order(state, plan.order, plan.merged);
  }

  // True if merged mode would delay the requests it leaves out too much.
  bool delays(const Candidate& merged, const PolicyState& state, const std::vector<StepPart>& parts,
              const std::vector<RequestIndex>& starving) const {
    const auto other = [&](RequestIndex i) { return state[i].merge != merged.mode.merged; };
    const Duration step = from_seconds(merged.seconds + merged.writing);
    return std::ranges::any_of(starving, other) ||
           std::ranges::any_of(parts, [&](const StepPart& part) {
             const Request& request = state[part.request];
             return other(part.request) && request.tolerance == Duration{} &&
                    request.passed + step > options_.tolerance;
           });
  }

  // False: requests of others need the base weights.
  static bool mixes(AdapterId adapter, const PolicyState& state) {
    for (RequestIndex i = 0; i < state.size(); ++i)
      if (state[i].merge == adapter) return state[i].merges_among_others;
    return true;
  }

  static int full_batch(const PolicyState& state) {
    return std::min<int>(state.max_sequences, static_cast<int>(state.size()));
  }

  // The time that prompts take in a step.
  static double prompt_seconds(const LiveCosts& costs, const StepShape& shape) {
    return costs.running_seconds(
               {.prefill_tokens = shape.prefill_tokens, .prefill_context = shape.prefill_context}) -
           costs.running_seconds({});
  }

  // Seconds per output token, excluding the time of prompts if anything decodes.
  static double token_seconds_of(const LiveCosts& costs, const StepBatch& batch, double prompts) {
    const double seconds = costs.running_seconds(batch.shape);
    if (const int decodes = batch.shape.decode_tokens; decodes > 0)
      return (seconds - prompts) / decodes;
    return seconds / batch.yields;
  }

  // Weighted counts of mergeable adapters.
  class Majority {
   public:
    void add(AdapterId adapter, int count) {
      if (adapter == kBaseModel) return;
      if (const int sum = counts_[adapter] += count; sum > most_) best_ = adapter, most_ = sum;
    }
    // The most frequent adapter, if its count exceeds `bound`.
    std::optional<AdapterId> above(double bound) const {
      return most_ > bound ? best_ : std::nullopt;
    }

   private:
    std::unordered_map<AdapterId, int> counts_;
    std::optional<AdapterId> best_;
    int most_ = 0;
  };

  // R_merge of the algorithm: the adapter with the most requests. If prompts are few and long, the
  // adapter with the most tokens in the step matters more.
  std::array<std::optional<AdapterId>, 2> commonest(const PolicyState& state,
                                                    const std::vector<RequestIndex>& order,
                                                    const std::vector<StepPart>& parts) const {
    Majority requests, tokens;
    for (const RequestIndex i : order) requests.add(state[i].merge, 1);
    int all = 0;
    for (const StepPart& part : parts) {
      tokens.add(state[part.request].merge, part.tokens);
      all += part.tokens;
    }
    const auto first = requests.above(options_.merged_share * full_batch(state));
    const auto second = tokens.above(options_.merged_share * all);
    return {first, second == first ? std::nullopt : second};
  }

  std::vector<Candidate> candidates_of(const PolicyState& state,
                                       const std::vector<RequestIndex>& order,
                                       const std::vector<StepPart>& parts,
                                       const std::vector<RequestIndex>& starving) const {
    std::vector<Candidate> candidates;
    const AdapterId held = state.weights.held;
    const bool runs = held != kBaseModel && std::ranges::any_of(order, [&](RequestIndex i) {
                        return state[i].merge == held;
                      });
    double token_seconds = 0;  // per output token, unmerged
    const auto consider = [&](StepMode mode) {
      Candidate c{.mode = mode,
                  .change = change_to(mode.merged, state.weights),
                  .batch = batch_of(state, order, mode)};
      if (c.batch.requests == 0) return;
      const StepShape& shape = c.batch.shape;
      if (mode.mode == Mode::kMixture && shape.segments > 0 && !mixes(mode.merged, state)) return;
      if (c.change.writes()) c.writing = state.costs->weights_seconds(shape);
      c.seconds = state.costs->seconds(shape) - c.writing;
      if (c.change.merges && runs) c.writing *= 2;
      const double prompts = prompt_seconds(*state.costs, shape);
      if (candidates.empty()) token_seconds = token_seconds_of(*state.costs, c.batch, prompts);
      c.rate = (c.batch.yields + prompts / token_seconds) / c.seconds;
      if (mode.mode == Mode::kMerged) c.rate /= options_.merged_gain;
      if (mode.mode == Mode::kMerged && delays(c, state, parts, starving)) return;
      candidates.push_back(c);
    };
    consider({Mode::kUnmerged, kBaseModel});
    const auto merging = [&](AdapterId adapter) {
      consider({Mode::kMixture, adapter});
      consider({Mode::kMerged, adapter});
    };
    if (runs) merging(held);
    for (const auto adapter : commonest(state, order, parts))
      if (adapter && adapter != held) merging(*adapter);
    return candidates;
  }

  // times: a merge starts once it would have saved this multiple of its cost.
  static const Candidate& choose(const std::vector<Candidate>& candidates, double times,
                                 PolicyMemory& memory) {
    // The best candidate among those with the lowest switching cost, usually zero.
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
    if (memory.saved < times * (best->writing - cheap->writing)) return *cheap;
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
