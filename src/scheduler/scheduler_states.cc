// Which states of a sequence a step keeps as checkpoints, for later requests with the same prefix.
#include <algorithm>

#include "memory/pool.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {
namespace {

using memory::BlockTable;
using memory::kBlockTokens;

// A checkpoint must save the computation of so many tokens for each block that it takes, compared
// with the KV of as many blocks.
constexpr int kLeastShare = 8;
// Tokens at a prompt's end that the next turn of its conversation may not have: what begins the
// assistant's turn, such as a thought.
constexpr int kTurnBegin = 8;

}  // namespace

// At the end of the stored prefix that went on behind its last checkpoint: other sequences branch
// there. And at the end of the prompt's last whole block before its last tokens: for the same
// prompt, or one that goes on. They take no memory that a request waits for.
void Scheduler::keep_states(const Step& step, StepItem& item) {
  Request& request = *item.request;
  if (!pool_.prefix_caching()) return;
  int wanted[BlockTable::kMostKept] = {
      request.table.branch * kBlockTokens,
      (request.prompt_tokens - 1 - kTurnBegin) / kBlockTokens * kBlockTokens};
  std::ranges::sort(wanted);
  const int least = std::max(1, pool_.state_blocks() / kLeastShare) * kBlockTokens;
  // Where the request began, or its last checkpoint is.
  int last = request.cached_from;
  for (const int tokens : wanted) {
    if (tokens - last < least) continue;
    last = tokens;
    const int rows = tokens - request.computed_tokens;
    if (rows > 0 && rows <= item.tokens) item.kept.push_back(rows);
  }
  if (step.short_of_memory || lacks_memory_) item.kept.clear();
  // With room for fewer, the first ones.
  item.kept.resize(pool_.reserve_checkpoints(request.table, static_cast<int>(item.kept.size())));
}

// For a running request that needs the memory. False: the plan keeps no states.
bool Scheduler::give_back_kept(Step& step) {
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
