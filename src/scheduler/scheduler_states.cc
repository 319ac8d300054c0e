// The states of a sequence that a step keeps as checkpoints, for later requests with the same
// prefix.
#include <algorithm>

#include "memory/pool.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {
namespace {

using memory::BlockTable;
using memory::kBlockTokens;

// Relative to the KV of as many blocks, the share of computation that a checkpoint must save per
// block it takes: 1 in this many.
constexpr int kLeastShare = 8;
// Tokens at a prompt's end that the conversation's next turn may not repeat: the start of the
// assistant's turn, such as a thought.
constexpr int kTurnBegin = 8;

}  // namespace

// Keeps a state where the stored prefix goes on beyond its last checkpoint, because other sequences
// branch there, and at the end of the last whole block before the prompt's last tokens, for the
// same prompt or one that continues it. Never takes memory that a request waits for.
void Scheduler::keep_states(const Step& step, StepItem& item) {
  Request& request = *item.request;
  if (!pool_.prefix_caching()) return;
  int wanted[BlockTable::kMostKept] = {
      request.table.branch * kBlockTokens,
      (request.prompt_tokens - 1 - kTurnBegin) / kBlockTokens * kBlockTokens};
  std::ranges::sort(wanted);
  const int least = std::max(1, pool_.state_blocks() / kLeastShare) * kBlockTokens;
  // Where the request started, or its last checkpoint.
  int last = request.cached_from;
  for (const int tokens : wanted) {
    if (tokens - last < least) continue;
    last = tokens;
    const int rows = tokens - request.computed_tokens;
    if (rows > 0 && rows <= item.tokens) item.kept.push_back(rows);
  }
  if (step.short_of_memory || lacks_memory_) item.kept.clear();
  // If there is room for fewer, keep the first ones.
  item.kept.resize(pool_.reserve_checkpoints(request.table, static_cast<int>(item.kept.size())));
}

// Frees kept states for a running request that needs memory. Returns false if the plan keeps none.
bool Scheduler::drop_kept_states(Step& step) {
  bool any = false;
  for (StepItem& item : step.plan.items) {
    if (item.kept.empty()) continue;
    item.kept.clear();
    (void)pool_.reserve_checkpoints(item.request->table, 0);
    any = true;
  }
  return any;
}

}  // namespace valora::scheduler
