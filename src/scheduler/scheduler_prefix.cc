// Waiting requests whose prefix another request is computing wait for it: the same prompt of
// several adapters that act later, or of several clients, is computed once.
#include <algorithm>

#include "memory/pool.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {
namespace {

using memory::kBlockTokens;

// Blocks that a request must save to begin to wait. Fewer tokens cost less than a step.
constexpr int kLeastShared = 4;

// Whole blocks that both requests begin with. A key depends on all keys before it.
int common_blocks(const Request& a, const Request& b) {
  const size_t most = std::min(a.block_keys.size(), b.block_keys.size());
  size_t equal = 0, end = most;
  while (equal < end) {
    const size_t middle = (equal + end) / 2;
    if (a.block_keys[middle] == b.block_keys[middle])
      equal = middle + 1;
    else
      end = middle;
  }
  return static_cast<int>(equal);
}

// Media after the common blocks should be encoded meanwhile, so their request does not wait.
bool has_media_after(const Request& request, int blocks) {
  if (request.identity.media.empty()) return false;
  const memory::MediaSpan& last = request.identity.media.back();
  return last.token_begin + last.tokens > blocks * kBlockTokens;
}

}  // namespace

// A leader may be left out by the policy for long. Others then stop waiting for it.
bool Scheduler::is_advancing(const Request& leader, TimePoint now) const {
  return now - leader.advanced <= config_.patience;
}

// True if one of `leaders` computes, no later, enough tokens that the request needs and the pool
// does not have.
bool Scheduler::follows(const Request& request, std::span<const Request* const> leaders,
                        TimePoint now) {
  // The last token is always computed, to yield logits.
  const int reusable = (static_cast<int>(request.tokens.size()) - 1) / kBlockTokens;
  const int least = request.follows ? 1 : kLeastShared;
  int stored = -1;
  for (const Request* leader : leaders) {
    const int common = std::min(common_blocks(request, *leader), reusable);
    if (common < least || leader->priority > request.priority || !is_advancing(*leader, now) ||
        has_media_after(request, common))
      continue;
    if (stored < 0)
      stored = pool_.resident_tokens(request.identity, request.block_keys) / kBlockTokens;
    if (common - stored >= least && leader->computed_tokens < (stored + 1) * kBlockTokens)
      return true;
  }
  return false;
}

// Removes the requests that wait for the prefix of a running request, or of an earlier ready one.
// With a state besides the KV, a prefix is of use up to a checkpoint only, so nothing waits.
void Scheduler::hold_followers(std::vector<Request*>& ready, TimePoint now) {
  if (!pool_.prefix_caching() || pool_.state_blocks() > 0) return;
  int places = config_.max_num_seqs - static_cast<int>(running_.size());
  std::vector<const Request*> leaders;
  for (const auto& request : running_)
    if (request->computed_tokens < request->prompt_tokens) leaders.push_back(request.get());
  std::erase_if(ready, [&](Request* request) {
    if (places <= 0) return false;  // the step cannot admit it
    request->follows = follows(*request, leaders, now);
    if (request->follows) return true;
    if (request->advanced == TimePoint{}) request->advanced = now;
    leaders.push_back(request);
    --places;
    return false;
  });
}

}  // namespace valora::scheduler
