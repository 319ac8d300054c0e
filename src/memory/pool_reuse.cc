// Feeds the ReuseModel: which nodes are idle, and which are visited again.
#include <algorithm>
#include <utility>

#include "memory/pool.h"

namespace valora::memory {
namespace {

// Each sample_idle_times() looks at 1 / kWatched of all KV blocks.
constexpr int32_t kWatched = 64;
// Factor on the weight of past observations, applied once per slot of the visit window.
constexpr double kFade = 0.85;
// References to a block used by a single table: the tree's and the table's.
constexpr int kIdleReferences = 2;

}  // namespace

// Adds the time since the last call to the groups of idle nodes: all adapters, and a sample of the
// KV in both tiers.
void Pool::sample_idle_times() {
  const Slot now_slot = slot();
  const double time = seconds(now_ - sampled_at_);
  sampled_at_ = now_;
  for (const auto& [key, node] : tree_.adapters())
    if (node.uses > 0 && !node.pinned())
      reuse_.wait(ReuseModel::group_of(node, now_slot), seconds(now_ - node.last_use), time);
  const int32_t total = total_blocks() + swap_.total_blocks();
  const int32_t count = std::min(total, total / kWatched + 1);
  for (int32_t i = 0; i < count; ++i) {
    sampled_ = (sampled_ + 1) % total;
    const int32_t swapped = sampled_ - total_blocks();
    const KvNode* node = swapped < 0 ? tree_.node_of(sampled_) : tree_.by_swap_block()[swapped];
    if (!node || node->held || (swapped >= 0 && node->present())) continue;
    reuse_.wait(ReuseModel::group_of(*node), seconds(now_ - node->last_use), time,
                static_cast<double>(total) / count);
  }
  if (last_fade_slot_ != now_slot) reuse_.fade(kFade);
  last_fade_slot_ = now_slot;
  reuse_.refresh();
}

void Pool::visit(TreeNode& node) {
  node.visits.add(slot());
  ++node.uses;
  node.last_use = now_;
}

// A request asks for the adapter, which others may already be using.
void Pool::visit_adapter(AdapterNode& node) {
  if (node.uses > 0 && !node.pinned())
    reuse_.visit(ReuseModel::group_of(node, slot()), seconds(now_ - node.last_use));
  visit(node);
}

// A request holds this prefix from now on, which ends the idle time of blocks that nobody else
// held.
void Pool::record_reuse(const BlockTable& prefix) {
  for (const BlockId block : prefix.blocks) {
    const KvNode* node = tree_.node_of(block);
    if (node && arena_.references(block) == kIdleReferences)
      reuse_.visit(ReuseModel::group_of(*node), seconds(now_ - node->last_use));
  }
}

// Counts a visit to the stored prefix that a sequence starts with. If another sequence still holds
// it, this is not the next turn of a conversation, but another answer to the same prompt or an
// equal prompt.
void Pool::visit_prefix(const BlockTable& table, Claim& claim) {
  const bool again = std::exchange(claim.visited, true);  // it was preempted
  if (table.committed == 0) return;
  const BlockId end = table.blocks[table.committed - 1];
  const KvNode& last = *tree_.node_of(end);
  const bool next_turn = arena_.references(end) == kIdleReferences;
  const uint32_t turn = last.shared ? 1 : last.turn + (next_turn ? 1 : 0);
  for (int i = 0; i < table.committed; ++i) {
    KvNode& node = *tree_.node_of(table.blocks[i]);
    node.awaited_until = {};
    if (again) continue;
    visit(node);
    node.turn = turn;
  }
}

}  // namespace valora::memory
