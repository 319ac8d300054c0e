// The number of guesses of its next tokens that a request runs in a step.
#include <algorithm>
#include <new>

#include "memory/pool.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {
namespace {

constexpr double kNewestDraft = 0.15;  // weight of a guess in the share of correct ones
constexpr double kFirstShare = 0.5;    // for an adapter's first request
constexpr int kTryAgainAfter = 32;     // steps in which guessing was not worthwhile

void note_guess(double& share, bool right) { share += kNewestDraft * ((right ? 1 : 0) - share); }

}  // namespace

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
