// Time: what a step costs and changes of the weights, how many prompt tokens it may take while
// others decode, and how many guesses are worth theirs.
#include "scheduler/scheduler.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "memory/pool.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {
namespace {

// True if the request has media and its prompt is not fully computed.
bool computes_media(const Request& request) {
  return has_pending_media(request) ||
         (!request.identity.media.empty() && request.remaining_tokens() > 1);
}

// True if the request arrived after the oldest request that computes media.
bool comes_after_media(const Request* media, const Request& request) {
  return media && &request != media &&
         std::pair(request.arrival, request.id) > std::pair(media->arrival, media->id);
}

// A step that would end inside a joint range stops before it; if the range comes first, the step
// includes all of it if `most` allows, otherwise nothing.
int in_whole_ranges(const Request& request, int tokens, int most) {
  const int64_t from = request.computed_tokens, end = from + tokens;
  const auto range = std::ranges::upper_bound(request.joint, end, {}, &PositionRange::end);
  if (range == request.joint.end() || range->begin >= end) return tokens;
  if (range->begin > from) return static_cast<int>(range->begin - from);
  return range->end - from <= most ? static_cast<int>(range->end - from) : 0;
}

constexpr double kNewestDraft = 0.15;  // weight of a guess in the share of correct ones
constexpr double kFirstShare = 0.5;    // for an adapter's first request
constexpr int kTryAgainAfter = 32;     // steps in which guessing was not worthwhile

void note_guess(double& share, bool right) { share += kNewestDraft * ((right ? 1 : 0) - share); }

}  // namespace

void Scheduler::count_passed(TimePoint now) {
  for (const auto& request : passed_) request->passed += now - passed_at_;
  passed_.clear();
  passed_at_ = now;
}

// Requests of others would run on weights that lost more by rounding than the bound allows
// (engine/adapters/merge_bound.h), whatever the policy chose.
void Scheduler::keep_others_exact(Step& step) {
  StepPlan& plan = step.plan;
  if (plan.merged == kBaseModel) return;
  for (const Request* request : step.order)
    if (request->merge == plan.merged) mixes_ = {plan.merged, request->merges_among_others};
  const bool others = std::ranges::any_of(
      plan.items, [&](const StepItem& item) { return item.request->merge != plan.merged; });
  // Without a request of the adapter, what was known of it counts.
  if (!others || (mixes_.first == plan.merged && mixes_.second)) return;
  plan.merged = kBaseModel;
  plan.mode = mode_ = Mode::kUnmerged;
}

// Computes the step's shape, for the costs; the weights change when it runs.
void Scheduler::finalize_shape(StepPlan& plan) {
  StepShaper shaper(plan.mode, plan.merged);
  for (const StepItem& item : plan.items) shaper.add(item);
  const WeightsChange change = change_to(plan.merged, weights_);
  shaper.change(change);
  plan.shape = shaper.shape();
  // All its requests use the merged adapter.
  if (plan.mode == Mode::kMixture && plan.shape.segments == 0)
    plan.mode = plan.shape.mode = mode_ = Mode::kMerged;
  weights_ = change.after;
}

void Scheduler::note_step(const StepPlan& plan, Duration time) {
  record_gap(plan, seconds(time));
  if (config_.proposer) record_draft_rows(plan, seconds(time));
  costs_.observe(plan.shape, seconds(time));
  int tokens = 0;
  for (const StepItem& item : plan.items) tokens += item.known() > 1 ? item.tokens : 0;
  pool_.record_prefill(tokens, seconds(time));
}

// The cost of an item's tokens on their own: in seconds, or with the weights of VTC if costs are
// unknown.
double Scheduler::price(const StepItem& item) const {
  const bool prefill = item.known() > 1;
  if (!costs_.known()) return prefill ? item.tokens : 2;
  return costs_.running_seconds(prefill ? StepShape{.prefill_tokens = item.tokens}
                                        : StepShape{.decode_tokens = item.tokens});
}

// Divides a step's time among its requests in proportion to what each would take on its own.
void Scheduler::charge(const StepPlan& plan, Duration time) {
  double total = 0;
  for (const StepItem& item : plan.items) total += price(item);
  const double unit = costs_.known() ? seconds(time) / total : 1;
  for (const StepItem& item : plan.items) waiting_.serve(*item.request, unit * price(item));
}

// The time that these prompt tokens add to a step in which all running requests decode.
double Scheduler::prefill_seconds(int tokens) const {
  const auto decodes = static_cast<int>(running_.size());
  return costs_.running_seconds({.prefill_tokens = tokens, .decode_tokens = decodes}) -
         costs_.running_seconds({.decode_tokens = decodes});
}

// Seconds of prefill that running requests still have to do.
double Scheduler::running_prefill() const {
  double sum = 0;
  for (const auto& request : running_)
    if (const int tokens = request->remaining_tokens(); tokens > 1) sum += prefill_seconds(tokens);
  return sum;
}

// A running request ends. The rate of such ends is measured only while no place is free.
void Scheduler::record_step_end(TimePoint now) {
  constexpr double kNewest = 0.1;
  if (static_cast<int>(running_.size()) < config_.max_num_seqs) {
    last_end_ = {};
    return;
  }
  if (last_end_ != TimePoint{})
    end_interval_ += kNewest * (seconds(now - last_end_) - end_interval_);
  last_end_ = now;
}

// A request waits for the prompts before it and for a place in the step. One that is not too late
// is added to those ahead of the next.
bool Scheduler::misses_target(Request& request, Ahead& ahead, TimePoint now) {
  if (request.expected_cached < 0) {
    memory::extend_block_keys(request.identity, request.tokens, request.block_keys);
    request.expected_cached =
        pool_.prefix_caching() ? pool_.resident_tokens(request.identity, request.block_keys) : 0;
  }
  const auto tokens = static_cast<int>(request.tokens.size());
  const double own = prefill_seconds(std::max(1, tokens - request.expected_cached));
  const double step = costs_.running_seconds({.decode_tokens = static_cast<int>(running_.size())});
  const int places = config_.max_num_seqs - static_cast<int>(running_.size());
  const double place = std::max(0, ahead.requests - places + 1) * end_interval_;
  const double begin = std::max(ahead.prefill, place);
  if (request.deadline != TimePoint{} && !request.scheduled_once &&
      now + from_seconds(begin + own + step) > request.deadline) {
    ++early_aborts_;
    return true;
  }
  ahead.prefill += own;
  ++ahead.requests;
  return false;
}

// ---- gaps: limits the prompt tokens in a step that also decodes ----

double Scheduler::gap_bound(const Request& request) const {
  return request.identity.media.empty() ? config_.max_decode_gap : config_.max_media_gap;
}

bool Scheduler::bounds_gaps() const {
  return (config_.max_decode_gap > 0 || config_.max_media_gap > 0) && costs_.known();
}

// While requests decode, the limit protects them. While media are encoded or computed, it protects
// the request with the media: later prompts get no more of a step than that request may take. With
// only their own limit they would overtake it forever, because its media are encoded between steps.
void Scheduler::limit_prefill(Step& step, std::span<Request* const> running) const {
  if (!bounds_gaps()) return;
  StepShaper decodes(step.plan.mode, step.plan.merged);
  for (const Request* request : running)
    if (request->remaining_tokens() == 1) decodes.add(*request, 1);
  if (config_.max_media_gap > 0)
    for (const auto& request : running_)
      if (computes_media(*request) && !comes_after_media(step.media_first, *request))
        step.media_first = request.get();
  const StepShape shape = decodes.shape();
  step.decodes = shape.decode_tokens > 0;
  if (!step.decodes && !step.media_first) return;
  const double decode = config_.costs.running_seconds(shape) * std::exp(log_decode_);
  step.free_seconds = step.decodes ? kGapSteps * decode : 0;
  step.limited = std::move(decodes);
}

// The part of `most` tokens that the limit allows. The first prompt of a step always gets some.
int Scheduler::prefill_within_bound(const Step& step, const Request& request, int most) const {
  if (most <= 1 || !step.limited) return most;
  double bound = step.decodes ? gap_bound(request) : 0;
  if (comes_after_media(step.media_first, request))
    bound = bound > 0 ? std::min(bound, config_.max_media_gap) : config_.max_media_gap;
  if (bound <= 0) return most;
  const double seconds = std::max(bound, step.free_seconds) / std::exp(log_mixed_);
  const auto fits = [&](int tokens) {
    StepShaper shaper = *step.limited;
    shaper.add(request, tokens);
    return config_.costs.running_seconds(shaper.shape()) <= seconds;
  };
  int low = !step.prefills ? std::min(most, kLeastChunk) : 0, high = most;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

int Scheduler::prefill_room(const Step& step, const Request& request) const {
  const int most = std::min(request.remaining_tokens(), step.budget);
  const int tokens = prefill_within_bound(step, request, most);
  const bool first = !step.limited || !step.prefills;
  return in_whole_ranges(request, tokens, first ? most : tokens);
}

void Scheduler::count_prefill(Step& step, const Request& request, int tokens) {
  if (!step.limited || tokens <= 1) return;
  step.limited->add(request, tokens);
  step.prefills = true;
}

// Each kind of step has its own factor, because an estimate may be right for one and wrong for the
// other, and the single factor of LiveCosts follows the more frequent one.
void Scheduler::record_gap(const StepPlan& plan, double seconds) {
  constexpr double kNewest = 0.5;  // a prompt takes few steps
  const StepShape& shape = plan.shape;
  if (!bounds_gaps() || seconds <= 0) return;
  if (shape.decode_tokens == 0 || shape.draft_tokens > 0 || shape.merges || shape.restores) return;
  // A few prompt tokens say nothing about the cost of many.
  if (shape.prefill_tokens > 0 && shape.prefill_tokens < kLeastChunk) return;
  double& log_factor = shape.prefill_tokens > 0 ? log_mixed_ : log_decode_;
  const double most = std::log(kMostMixed);
  const double taken = std::log(seconds / config_.costs.seconds(shape));
  log_factor += kNewest * (std::clamp(taken, -most, most) - log_factor);
}

// ---- drafts: the number of guesses of its next tokens that a request runs in a step ----

// Adds guesses to an item that runs the last known token. Guesses yield to other requests: they
// take no place in the step that a running request may need, and no memory while it is short.
void Scheduler::add_drafts(Step& step, StepItem& item) {
  Request& request = *item.request;
  const auto known = static_cast<int>(request.tokens.size());
  if (!item.yields || item.tokens != 1 || known == request.prompt_tokens) return;
  if (step.short_of_memory || lacks_memory_) return;
  const auto others = static_cast<int>(running_.size() + step.admitted.size());
  const int most = std::min({config_.proposer->most(), request.most_tokens - known - 1,
                             step.budget - std::max(1, others)});
  if (most <= 0) return;
  const int worth = worthwhile(step, request, most);
  if (worth == 0) {
    ++request.drafts.unused;
    return;
  }
  std::vector<int32_t> drafts = config_.proposer->propose(request, worth);
  if (drafts.empty()) return;
  const auto rows = static_cast<int>(drafts.size());
  if (pool_.reserve(request.table, known + rows) != memory::Room::kReserved) return;
  request.drafts.unused = 0;
  item.tokens += rows;
  item.drafts = std::move(drafts);
  step.drafts += rows;
}

double Scheduler::acceptance_rate(const Request& request) const {
  if (request.drafts.right >= 0) return request.drafts.right;
  const auto known = acceptance_rates_.find(request.adapter);
  return known == acceptance_rates_.end() ? kFirstShare : known->second;
}

// A guess is worth a row if the row costs less time than it is expected to save. A correct guess
// saves a step's time divided by its requests; it counts only if all guesses before it are correct,
// too.
int Scheduler::worthwhile(const Step& step, const Request& request, int drafts) const {
  if (!costs_.known()) return drafts;
  const auto decodes = static_cast<int>(std::max<size_t>(1, running_.size()));
  StepShape shape{.decode_tokens = decodes};
  const double saved = draft_costs_.plain_seconds(costs_.running_seconds(shape)) / decodes;
  shape.decode_tokens += step.drafts;
  double before = costs_.running_seconds(shape), chance = 1;
  const double right = acceptance_rate(request);
  for (int i = 0; i < drafts; ++i) {
    ++shape.decode_tokens;
    shape.decode_context += request.computed_tokens + 2 + i;
    for (const DecoderAdapter& use : request.decoder_adapters) shape.token_ranks += use.rank;
    const double after = costs_.running_seconds(shape);
    chance *= right;
    if (chance * saved < draft_costs_.row_seconds(after - before))
      return i == 0 && request.drafts.unused >= kTryAgainAfter ? 1 : i;
    before = after;
  }
  return drafts;
}

void Scheduler::record_drafts(const StepItem& item) {
  const auto drafts = static_cast<int>(item.drafts.size()), right = drafts - item.rejected;
  if (right < 0) return;  // the request waits for its result
  ++drafts_;
  draft_tokens_ += static_cast<uint64_t>(drafts);
  accepted_drafts_ += static_cast<uint64_t>(right);
  Request& request = *item.request;
  request.drafts.right = acceptance_rate(request);
  double* share = nullptr;
  try {
    share = &acceptance_rates_.try_emplace(request.adapter, kFirstShare).first->second;
  } catch (const std::bad_alloc&) {  // the adapter's next requests start from kFirstShare
  }
  const int verified = std::min(right + 1, drafts);  // guesses after a wrong one were not verified
  for (int i = 0; i < verified; ++i) {
    note_guess(request.drafts.right, i < right);
    if (share) note_guess(*share, i < right);
  }
}

void Scheduler::record_draft_rows(const StepPlan& plan, double seconds) {
  const StepShape& shape = plan.shape;
  if (!costs_.known() || shape.prefill_tokens > 0 || shape.merges || shape.restores) return;
  StepShape plain = shape;
  plain.decode_tokens -= shape.draft_tokens;
  plain.draft_tokens = 0;
  draft_costs_.observe(costs_.running_seconds(plain), shape.draft_tokens, seconds);
}

}  // namespace valora::scheduler
