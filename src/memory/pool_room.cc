// Making room: evicts blocks from the pool, some after a copy to the swap space.
#include <algorithm>
#include <cassert>

#include "memory/pool.h"

namespace valora::memory {
namespace {

// Each ordering yields at least a 32nd of the pool as candidates, so that steps that need a block
// rarely have to compute another.
constexpr int32_t kVictimShare = 32;

bool covered_by_leaving(const KvNode& node) {
  return std::ranges::all_of(node.children,
                             [](const KvNode* c) { return !c->present() || c->leaving; });
}

}  // namespace

int32_t Pool::kv_limit() const { return total_blocks() - config_.adapter_blocks.value_or(0); }

int32_t Pool::adapter_limit() const { return config_.adapter_blocks.value_or(total_blocks()); }

int64_t Pool::max_tokens(std::span<const AdapterNeed> adapters) const {
  int64_t needed = config_.kept_limit;
  for (const AdapterNeed& need : adapters) needed += need.blocks;
  if (needed > adapter_limit()) return 0;
  const int64_t left = config_.adapter_blocks ? kv_limit() : total_blocks() - needed;
  return std::max<int64_t>(0, left - config_.state_blocks) * kBlockTokens;
}

int32_t Pool::free_for(Kind kind) const {
  const int32_t free = arena_.free_blocks();
  if (!config_.adapter_blocks) return free;
  const int32_t adapters = tree_.counts().adapter_blocks;
  const int32_t left = kind == Kind::kAdapter ? adapter_limit() - adapters
                                              : kv_limit() - (arena_.used_blocks() - adapters);
  return std::clamp(left, 0, free);
}

int32_t Pool::idle_for(Kind kind) const {
  const DependencyTree::Counts& counts = tree_.counts();
  const int32_t idle_kv = counts.idle_kv + counts.idle_checkpoint_blocks;
  if (!config_.adapter_blocks) return idle_kv + counts.idle_adapter_blocks;
  return kind == Kind::kAdapter ? counts.idle_adapter_blocks : idle_kv;
}

// Blocks in use beyond the capacity, after the pool has shrunk.
int32_t Pool::over_capacity() const {
  return std::max(0, arena_.used_blocks() - arena_.capacity());
}

int32_t Pool::available_blocks() const {
  return std::max(0, free_for(Kind::kKv) + idle_for(Kind::kKv) - over_capacity());
}

double Pool::usage() const {
  const DependencyTree::Counts& counts = tree_.counts();
  const int32_t idle = counts.idle_kv + counts.idle_adapter_blocks + counts.idle_checkpoint_blocks;
  return (arena_.used_blocks() - idle) / static_cast<double>(std::max(1, total_blocks()));
}

Room Pool::make_room(Kind kind, int32_t blocks) {
  const int32_t over = over_capacity();
  // Evict nothing if the request cannot fit anyway.
  if (blocks > free_for(kind) + idle_for(kind) - over) return Room::kNone;
  while (free_for(kind) < blocks) {
    const int32_t missing = blocks - free_for(kind) + over - tree_.counts().leaving;
    if (missing <= 0) return Room::kSoon;
    const bool states_too = kind == Kind::kKv || !config_.adapter_blocks;
    if (const std::optional<AnyNode> victim = next_victim(kind, missing))
      begin_eviction(*victim, Urgency::kRoom);
    else if (!states_too || !drop_oldest_checkpoint())
      return Room::kNone;
  }
  return Room::kReserved;
}

Pool::Victim Pool::victim_of(const AnyNode& any) {
  const TreeNode& node = tree_node(any);
  return {node.key, std::holds_alternative<AdapterNode*>(any), node.last_use, node.awaited_until};
}

// nullopt if the node is gone, has been visited or requested since, or may not leave now.
std::optional<AnyNode> Pool::find_victim(const Victim& victim) {
  const auto still = [&](auto* node) -> std::optional<AnyNode> {
    if (!node || node->last_use != victim.last_use || node->awaited_until != victim.awaited_until ||
        !is_next_victim(node))
      return std::nullopt;
    return node;
  };
  return victim.adapter ? still(tree_.find_adapter(victim.key))
                        : still(tree_.find_node(victim.key));
}

// The next node to evict, from an order that is renewed every period or when used up.
std::optional<AnyNode> Pool::next_victim(Kind kind, int32_t blocks) {
  auto& victims = victims_[static_cast<int>(kind)];
  TimePoint& end = victims_end_[static_cast<int>(kind)];
  for (bool renewed = false;; renewed = true) {
    if (now_ >= end) victims.clear();
    while (!victims.empty()) {
      const std::optional<AnyNode> node = find_victim(victims.front());
      victims.pop_front();
      if (node) return node;
    }
    if (renewed) return std::nullopt;
    const Kinds kinds = !config_.adapter_blocks  ? Kinds::kAll
                        : kind == Kind::kAdapter ? Kinds::kAdapters
                                                 : Kinds::kKv;
    const int32_t count = std::max(blocks, total_blocks() / kVictimShare);
    for (const AnyNode& node : swapper_.leave(tree_, statistics(), count, kinds))
      victims.push_back(victim_of(node));
    end = now_ + config_.period;
  }
}

// A KV node may be chosen while nodes below it are still being saved.
bool Pool::is_next_victim(const AnyNode& any) const {
  if (const auto* adapter = std::get_if<AdapterNode*>(&any)) return tree_.evictable(**adapter);
  const KvNode& node = *std::get<KvNode*>(any);
  return node.idle() && node.flight == Flight::kNone && !node.leaving && covered_by_leaving(node);
}

void Pool::begin_eviction(const AnyNode& any, Urgency urgency) {
  if (const auto* adapter = std::get_if<AdapterNode*>(&any)) {
    AdapterNode& node = **adapter;
    evict(node);
    node.rests_until = now_ + from_seconds(load_seconds_ * node.size);
    return;
  }
  KvNode& node = *std::get<KvNode*>(any);
  if (node.saved() || (node.rests_until <= now_ && save(node, urgency))) {
    tree_.set_leaving(node, true);
    evict_ancestors(&node);
  } else if (node.leaf >= 0) {
    evict(node);
  } else {
    tree_.set_leaving(node, true);  // evicted after the nodes below it
  }
}

// Starts a copy to the swap space. False if there is no room for it or it would not pay off.
bool Pool::save(KvNode& node, Urgency urgency) {
  if (!statistics().swap_pays_off()) return false;
  if (!make_swap_room()) return false;
  TakenBlocks taken(swap_, 1);
  start_move({.kind = MoveKind::kWriteKv,
              .urgency = urgency,
              .key = node.key,
              .blocks = {node.block},
              .swapped = taken.blocks().front(),
              .bytes = config_.block_bytes},
             &node);
  tree_.begin_save(node, taken.keep().front());
  return true;
}

bool Pool::make_swap_room() {
  if (swap_.free_blocks() == 0) {
    const int32_t count = std::max(1, swap_.total_blocks() / kVictimShare);
    for (KvNode* node : swapper_.unswap(tree_, statistics(), count)) tree_.unswap(*node);
  }
  return swap_.free_blocks() > 0;
}

void Pool::evict(KvNode& node) {
  totals_.kv_dropped += node.saved() ? 0 : 1;
  tree_.evict(node);
}

// Evicts a leaving node whose copy is complete, and then the ancestors that were waiting for it.
void Pool::evict_ancestors(KvNode* node) {
  while (node && node->leaving && node->leaf >= 0 && node->flight == Flight::kNone) {
    KvNode* parent = node->parent;
    node->rests_until = now_ + from_seconds(read_seconds_);
    evict(*node);
    node = parent;
  }
}

}  // namespace valora::memory
