// Claims: request and pin the adapters and KV that a request needs before it starts.
#include <algorithm>

#include "base/reserve.h"
#include "memory/pool.h"

namespace valora::memory {
namespace {

// How long KV read for a request is protected from eviction. Longer than copies and steps take.
constexpr Duration kAwaitedFor = std::chrono::seconds(10);

}  // namespace

// Holds the resident prefix of a sequence in the pool without counting as a use.
class Pool::HeldPrefix {
 public:
  HeldPrefix(Pool& pool, const KvIdentity& identity, std::span<const Digest> keys) : pool_(pool) {
    pool.hold_prefix(table_, identity, keys);
  }
  ~HeldPrefix() { pool_.drop(table_); }
  HeldPrefix(const HeldPrefix&) = delete;
  HeldPrefix& operator=(const HeldPrefix&) = delete;

 private:
  Pool& pool_;
  BlockTable table_;
};

Readiness Pool::claim(Claim& claim, const KvIdentity& identity, std::span<const Digest> keys,
                      int tokens) {
  if (claim.ready) return Readiness::kReady;
  if (const Readiness adapters = claim_adapters(claim, identity); adapters != Readiness::kReady)
    return adapters;
  if (const Readiness kv = claim_kv(identity, reusable(keys, tokens)); kv != Readiness::kReady)
    return kv;
  if (swaps()) {
    hold_prefix(claim.prefix, identity, reusable(keys, tokens));
    record_reuse(claim.prefix);
  }
  claim.ready = true;
  return Readiness::kReady;
}

Readiness Pool::claim_adapters(Claim& claim, const KvIdentity& identity) {
  Readiness readiness = Readiness::kReady;
  if (!claim.counted) requests_.add(slot());
  for (const AdapterNeed& need : identity.adapters) {
    if (need.blocks == 0) continue;
    AdapterNode& node = tree_.adapter(need);
    node.forgotten = false;
    if (!claim.counted) {
      visit_adapter(node);
      ++totals_.adapter_queries;
      totals_.adapter_hits += node.resident() ? 1 : 0;
    }
    if (node.failure) {
      claim.error = node.failure;
      readiness = Readiness::kFailed;
      continue;
    }
    if (std::ranges::find(claim.pinned, &node) == claim.pinned.end()) {
      reserve_more(claim.pinned);
      // Pinned before the load, so that making room does not evict adapters of this request.
      tree_.pin(node, 1);
      claim.pinned.push_back(&node);
    }
    if (node.resident() || readiness >= Readiness::kFull) continue;
    if (node.flight == Flight::kIn) {
      mover_.raise_priority(node.move, Urgency::kAdapterOfRequest);
      readiness = Readiness::kLoadingAdapter;
    } else {
      const Room room = load(node, Urgency::kAdapterOfRequest);
      readiness = room == Room::kReserved ? Readiness::kLoadingAdapter : Readiness::kFull;
    }
  }
  claim.counted = true;
  return readiness;
}

// Requests prefix blocks that are only in the swap space; not ready until they have been read.
Readiness Pool::claim_kv(const KvIdentity& identity, std::span<const Digest> keys) {
  if (!swaps() || !config_.prefix_caching) return Readiness::kReady;
  const KvRoot* root = tree_.find_root(identity.adapter);
  std::vector<KvNode*> path = tree_.resident_prefix(root, keys);
  const KvNode* next = next_of(path, identity, keys);
  if (!next) return Readiness::kReady;
  if (next->flight == Flight::kIn) {
    mover_.raise_priority(next->move, Urgency::kKvOfRequest);
    return Readiness::kLoadingKv;
  }
  if (next->unreadable || !statistics().swap_pays_off()) return Readiness::kReady;
  const size_t resident = path.size();
  for (KvNode* node; (node = next_of(path, identity, keys)) && !node->unreadable;)
    path.push_back(node);
  const auto wanted = static_cast<int32_t>(path.size() - resident);
  // Making room must not evict the resident prefix, only to be followed by reading it back.
  const HeldPrefix held(*this, identity, keys);
  const Room room = make_room(Kind::kKv, wanted);
  if (room == Room::kSoon) return Readiness::kLoadingKv;
  // The request could not run without that room anyway.
  if (room == Room::kNone) return Readiness::kFull;
  // Making room may have removed nodes from the swap space.
  path = tree_.resident_prefix(tree_.find_root(identity.adapter), keys);
  const size_t begin = path.size();
  while (path.size() < begin + wanted) {
    KvNode* node = next_of(path, identity, keys);
    if (!node || node->present() || !fill(*node, Urgency::kKvOfRequest)) break;
    node->awaited_until = now_ + kAwaitedFor;  // protects it from eviction until the request starts
    totals_.swapped_tokens += kBlockTokens;
    path.push_back(node);
  }
  return path.size() > begin ? Readiness::kLoadingKv : Readiness::kReady;
}

// The node that continues a path along `keys`, in any tier; null if there is none.
KvNode* Pool::next_of(std::span<KvNode* const> path, const KvIdentity& identity,
                      std::span<const Digest> keys) {
  if (path.size() == keys.size()) return nullptr;
  return tree_.find(tree_.find_root(identity.adapter), path.empty() ? nullptr : path.back(),
                    keys[path.size()]);
}

void Pool::unclaim(Claim& claim) {
  for (AdapterNode* node : claim.pinned) {
    tree_.pin(*node, -1);
    node->last_use = now_;
    if (node->pins == 0) drop_if_unused(*node);
  }
  claim.pinned.clear();
  claim.ready = false;
  drop(claim.prefix);
}

// For an adapter that may have lost its last pin: cancels its load, and removes it if it is marked
// for removal.
void Pool::drop_if_unused(AdapterNode& node) {
  node.failure.reset();
  if (node.pinned()) return;
  if (node.flight == Flight::kIn && mover_.cancel(node.move)) {
    moves_.erase(node.move);
    node.move = 0;
    tree_.release_blocks(node);
  }
  if (!config_.history && tree_.evictable(node)) evict(node);
  if (node.forgotten) {
    const Digest key = node.key;
    const bool resident = node.resident();
    if (!tree_.erase(node)) return;
    std::erase(pending_removals_, key);
    if (resident && listener_) listener_->on_left(key);
  }
}

}  // namespace valora::memory
