// Where data lie: makes room in the pool, copies between the tiers, and records reuse, by which
// both are chosen.
#include "memory/pool.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/fault.h"

namespace valora::memory {
namespace {

// Each ordering yields at least a 32nd of the pool as candidates, so that steps that need a block
// rarely have to compute another.
constexpr int32_t kVictimShare = 32;

bool covered_by_leaving(const KvNode& node) {
  return std::ranges::all_of(node.children,
                             [](const KvNode* c) { return !c->present() || c->leaving; });
}

constexpr Duration kRestAfterFailure = std::chrono::seconds(1);
constexpr double kNewest = 0.2;  // weight of the newest measurement

// Each sample_idle_times() looks at 1 / kWatched of all KV blocks.
constexpr int32_t kWatched = 64;
// Factor on the weight of past observations, applied once per slot of the visit window.
constexpr double kFade = 0.85;
// References to a block used by a single table: the tree's and the table's.
constexpr int kIdleReferences = 2;

}  // namespace

// ---- making room: evicts blocks from the pool, some after a copy to the swap space ----

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

// ---- moves: starting them, taking their results, and the swapper's periodic plan ----

void Pool::advance() {
  now_ = clock_.now();
  for (const MoveResult& result : mover_.poll()) finish(result);
  if (!kept_.empty() || !pending_removals_.empty()) retry_pinned_and_removed();
  if (now_ < next_plan_) return;
  next_plan_ = now_ + config_.period;
  const size_t before = moves_.size();
  plan();
  last_plan_moved_ = moves_.size() > before;
}

void Pool::start_move(Move move, AnyNode node) {
  const uint64_t id = move.id = next_move_++;
  moves_.emplace(id, Under{node, move.kind, move.bytes});
  try {
    mover_.start(std::move(move));
  } catch (...) {
    moves_.erase(id);
    throw;
  }
  tree_node(node).move = id;
}

Room Pool::load(AdapterNode& node, Urgency urgency) {
  const Room room = make_room(Kind::kAdapter, node.size);
  if (room != Room::kReserved) return room;
  TakenBlocks taken(arena_, node.size);
  start_move({.kind = MoveKind::kLoadAdapter,
              .urgency = urgency,
              .key = node.key,
              .blocks = taken.blocks(),
              .bytes = int64_t{node.size} * config_.block_bytes},
             &node);
  tree_.begin_load(node, taken.keep());
  return room;
}

bool Pool::fill(KvNode& node, Urgency urgency) {
  if (!node.saved() || node.unreadable || node.flight != Flight::kNone || free_for(Kind::kKv) == 0)
    return false;
  TakenBlocks taken(arena_, 1);
  start_move({.kind = MoveKind::kReadKv,
              .urgency = urgency,
              .key = node.key,
              .blocks = taken.blocks(),
              .swapped = node.swapped,
              .bytes = config_.block_bytes},
             &node);
  tree_.begin_fill(node, taken.keep().front());
  return true;
}

// Must not allocate: the result of a copy must not be lost.
void Pool::finish(const MoveResult& result) {
  const auto it = moves_.find(result.id);
  if (it == moves_.end()) return;
  const Under under = it->second;
  moves_.erase(it);
  measure(under, result);
  TreeNode& node = tree_node(under.node);
  node.move = 0;
  node.rests_until = now_ + (result.status.ok() ? from_seconds(result.seconds) : kRestAfterFailure);
  if (under.kind == MoveKind::kLoadAdapter)
    finish_load(*std::get<AdapterNode*>(under.node), result.status);
  else if (under.kind == MoveKind::kReadKv)
    finish_read(*std::get<KvNode*>(under.node), result.status);
  else
    finish_write(*std::get<KvNode*>(under.node), result.status);
}

void Pool::measure(const Under& move, const MoveResult& result) {
  MoveTotals& totals = move.kind == MoveKind::kLoadAdapter ? totals_.loads
                       : move.kind == MoveKind::kReadKv    ? totals_.reads
                                                           : totals_.writes;
  ++totals.moves;
  totals.seconds += result.seconds;
  if (!result.status.ok()) {
    ++totals.failed;
    return;
  }
  totals.bytes += move.bytes;
  if (move.kind == MoveKind::kLoadAdapter) totals_.load_times.add(result.seconds);
  if (move.kind == MoveKind::kWriteKv) return;
  const double measured =
      result.seconds * static_cast<double>(config_.block_bytes) / static_cast<double>(move.bytes);
  double& mean = move.kind == MoveKind::kLoadAdapter ? load_seconds_ : read_seconds_;
  mean += kNewest * (measured - mean);
}

void Pool::finish_load(AdapterNode& node, const Status& status) {
  std::optional<Error> failure = status.ok() ? announce(node) : copy_of(status.error());
  if (!failure) {
    tree_.end_load(node);
  } else {
    tree_.release_blocks(node);
    if (node.pins > 0) node.failure = std::move(failure);
  }
  if (node.pins == 0) drop_if_unused(node);
}

std::optional<Error> Pool::announce(const AdapterNode& node) {
  if (!listener_) return {};
  try {
    listener_->on_loaded(node.key, node.blocks);
    return {};
  } catch (const std::exception& e) {
    listener_->on_left(node.key);
    return fault("an adapter could not be loaded into the pool", e);
  }
}

void Pool::finish_read(KvNode& node, const Status& status) {
  if (status.ok() && !node.broken) {
    tree_.end_fill(node);
    return;
  }
  node.broken = true;
  node.unreadable = !status.ok();
  unwind(node);
}

// Removes a node whose fill failed, and the filled nodes below it, from the pool. Nodes that are
// still being filled are removed when their moves end.
void Pool::unwind(KvNode& node) {
  // Backwards, because a removed child is replaced by the last one.
  for (size_t i = node.children.size(); i-- > 0;) {
    KvNode* child = node.children[i];
    if (!child->present()) continue;
    if (child->flight == Flight::kIn) {
      child->broken = true;
      if (child->move == 0) unwind(*child);
    } else {
      unwind(*child);
    }
  }
  KvNode* at = &node;
  while (at && at->present_children == 0 && at->move == 0) {
    KvNode* parent = at->parent;
    if (at->flight == Flight::kIn) {
      if (!at->broken) return;
      tree_.cancel_fill(*at);
    } else if (at == &node && at->leaf >= 0) {
      evict(*at);
    } else {
      return;
    }
    if (!parent || !parent->broken) return;
    at = parent;
  }
}

void Pool::finish_write(KvNode& node, const Status& status) {
  if (status.ok()) {
    tree_.end_save(node);
    evict_ancestors(&node);
    return;
  }
  tree_.cancel_save(node);
  for (KvNode* above = node.parent; above && above->leaving; above = above->parent)
    tree_.set_leaving(*above, false);
}

void Pool::retry_pinned_and_removed() {
  const std::vector<Digest> kept = kept_, forgotten = pending_removals_;
  for (const Digest& key : kept) {
    AdapterNode* node = tree_.find_adapter(key);
    if (!node || node->resident())
      std::erase(kept_, key);
    else if (node->flight == Flight::kNone && node->rests_until <= now_)
      load(*node, Urgency::kBackground);
  }
  for (const Digest& key : forgotten) {
    AdapterNode* node = tree_.find_adapter(key);
    if (!node || !node->forgotten)
      std::erase(pending_removals_, key);
    else if (node->pins == 0)
      drop_if_unused(*node);
  }
}

// FastLibra §5.3: above the high mark, the least valuable nodes leave; below the low mark, the most
// valuable ones come in.
void Pool::plan() {
  if (!config_.history) return;
  if (const auto& valuation = swapper_.config().valuation)
    valuation->update(tree_, statistics());
  else
    sample_idle_times();
  const int32_t used = arena_.used_blocks(), adapters = tree_.counts().adapter_blocks;
  if (config_.adapter_blocks) {
    plan_for(Kinds::kAdapters, adapters, adapter_limit());
    plan_for(Kinds::kKv, used - adapters, kv_limit());
  } else {
    plan_for(Kinds::kAll, used, arena_.capacity());
  }
}

void Pool::plan_for(Kinds kinds, int32_t used, int32_t capacity) {
  const SwapperConfig& marks = swapper_.config();
  const auto high = static_cast<int32_t>(std::ceil(marks.high * capacity));
  const auto low = static_cast<int32_t>(std::floor(marks.low * capacity));
  if (used - tree_.counts().leaving > high) {
    int32_t beyond = used - tree_.counts().leaving - high;
    for (const AnyNode& node : swapper_.leave(tree_, statistics(), beyond, kinds)) {
      if (beyond <= 0) break;  // includes nodes' checkpoints, which leave with them
      if (const auto* kv = std::get_if<KvNode*>(&node))
        beyond -= static_cast<int32_t>((*kv)->checkpoint.size());
      if (is_next_victim(node) && tree_node(node).rests_until <= now_)
        begin_eviction(node, Urgency::kBackground);
    }
    return;
  }
  // With a fixed share (as in vLLM), nothing is loaded before a request asks for it.
  if (used >= low || config_.adapter_blocks) return;
  for (const AnyNode& node : swapper_.bring(tree_, statistics(), low - used, kinds)) {
    if (const auto* adapter = std::get_if<AdapterNode*>(&node)) {
      if (free_for(Kind::kAdapter) >= (*adapter)->size) load(**adapter, Urgency::kBackground);
    } else {
      KvNode& kv = *std::get<KvNode*>(node);
      if (kv.parent ? kv.parent->present() : kv.root->usable()) fill(kv, Urgency::kBackground);
    }
  }
}

// ---- reuse: which nodes are idle, and which are visited again ----

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
