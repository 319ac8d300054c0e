// Scheduler::check(): the invariants between any two calls.
#include <fmt/format.h>

#include <unordered_set>

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
  for (const auto* queue : {&running_, &waiting_}) {
    for (const auto& request : *queue) {
      if (!seen.insert(request.get()).second)
        return fmt::format("request {} is queued twice", request->id);
      if (std::string error = check_request(*request); !error.empty()) return error;
      tables.push_back(&request->table);
      claims.push_back(&request->claim);
    }
  }
  for (size_t i = window(); i < waiting_.size(); ++i)
    if (waiting_[i]->claim.holds())
      return fmt::format("request {} holds a claim far back in the queue", waiting_[i]->id);
  for (const auto& request : running_) {
    if (request->state != RequestState::kRunning)
      return fmt::format("request {} is in the running queue in another state", request->id);
    if (!request->claim.ready)
      return fmt::format("request {} is running without its adapters", request->id);
    if (!request->scheduled_once)
      return fmt::format("request {} is running but was never scheduled", request->id);
  }
  for (size_t i = 0; i < waiting_.size(); ++i) {
    const Request& request = *waiting_[i];
    if (request.state != RequestState::kWaiting)
      return fmt::format("request {} is in the waiting queue in another state", request.id);
    if (!request.table.blocks.empty() || request.computed_tokens > 0) {
      return fmt::format("request {} is waiting but holds memory", request.id);
    }
    if (i == 0) continue;
    const Request& before = *waiting_[i - 1];
    if (before.priority > request.priority)
      return fmt::format("request {} waits behind request {}, whose priority is lower", request.id,
                         before.id);
    if (before.priority < request.priority || request.preemptions == 0) continue;
    if (before.preemptions == 0 || before.arrival > request.arrival) {
      return fmt::format("preempted request {} waits behind request {}, which came later",
                         request.id, before.id);
    }
  }
  return pool_.check(tables, claims);
}

}  // namespace valora::scheduler
