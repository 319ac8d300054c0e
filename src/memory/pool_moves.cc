// Moves: starting them, taking their results, and the swapper's periodic plan.
#include <algorithm>
#include <cmath>

#include "base/fault.h"
#include "memory/pool.h"

namespace valora::memory {
namespace {

constexpr Duration kRestAfterFailure = std::chrono::seconds(1);
constexpr double kNewest = 0.2;  // weight of the newest measurement

}  // namespace

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

}  // namespace valora::memory
