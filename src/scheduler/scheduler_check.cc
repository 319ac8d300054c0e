// Scheduler::check(): invariants that hold between any two calls.
#include <fmt/format.h>

#include <unordered_set>

#include "memory/pool.h"
#include "scheduler/scheduler.h"

namespace valora::scheduler {

std::string Scheduler::check_request(const Request& request) const {
  const std::string name = fmt::format("request {}", request.id);
  const auto known = static_cast<int64_t>(request.tokens.size());
  const int64_t room = pool_.max_tokens(request.identity.adapters);
  if (known > room)
    return fmt::format("{} has {} tokens, but only {} fit in memory", name, known, room);
  if (request.computed_tokens < 0 || request.computed_tokens > known)
    return name + " has computed more tokens than it has";
  if (memory::blocks_for(request.computed_tokens) >
      static_cast<int64_t>(request.table.blocks.size())) {
    return name + " has computed tokens beyond its block table";
  }
  if (request.table.committed > request.computed_tokens / memory::kBlockTokens) {
    return name + " has committed blocks that are not full";
  }
  if (static_cast<int64_t>(request.block_keys.size()) > known / memory::kBlockTokens) {
    return name + " has keys for blocks that are not full";
  }
  return {};
}

std::string Scheduler::check() const {
  std::unordered_set<const Request*> seen;
  std::vector<const memory::BlockTable*> tables;
  std::vector<const memory::Claim*> claims{&merged_claim_};
  const std::vector<Request*> waiting = this->waiting();
  std::vector<const Request*> queued(waiting.begin(), waiting.end());
  for (const auto& request : running_) queued.push_back(request.get());
  for (const Request* request : queued) {
    if (!seen.insert(request).second) return fmt::format("request {} is queued twice", request->id);
    if (std::string error = check_request(*request); !error.empty()) return error;
    tables.push_back(&request->table);
    claims.push_back(&request->claim);
  }
  std::unordered_set<const Request*> window;
  for (const Request* request : window_) {
    window.insert(request);
    if (!seen.contains(request)) return "the last plan looked at a request that is gone";
  }
  for (const auto& request : running_) {
    if (request->state != RequestState::kRunning)
      return fmt::format("request {} is in the running queue in another state", request->id);
    if (!request->claim.ready)
      return fmt::format("request {} is running without its adapters", request->id);
    if (!request->scheduled_once)
      return fmt::format("request {} is running but was never scheduled", request->id);
  }
  for (const Request* request : waiting) {
    if (request->state != RequestState::kWaiting)
      return fmt::format("request {} is in the waiting queue in another state", request->id);
    if (request->preparing)
      return fmt::format("request {} is waiting and prepares its media", request->id);
    if (!request->table.blocks.empty() || request->computed_tokens > 0)
      return fmt::format("request {} is waiting but holds memory", request->id);
    if (request->claim.holds() && !window.contains(request))
      return fmt::format("request {} holds a claim far back in the queue", request->id);
  }
  if (std::string error = waiting_.check(); !error.empty()) return error;
  return pool_.check(tables, claims);
}

}  // namespace valora::scheduler
