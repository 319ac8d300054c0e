#include "memory/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/reserve.h"

namespace valora::memory {
namespace {

constexpr double kBatchSeconds = 5;  // FastLibra §5.1

// With fixed shares, evicting an adapter cannot wait for its KV, which belongs to the other share.
PoolConfig settled(PoolConfig config) {
  if (config.adapter_blocks) config.dependencies = false;
  assert(config.state_blocks == 0 || config.swap_blocks == 0);
  return config;
}

// How long KV read for a request is protected from eviction. Longer than copies and steps take.
constexpr Duration kAwaitedFor = std::chrono::seconds(10);

}  // namespace

Error Pool::pinned_limit_error(int32_t blocks, int32_t wanted) const {
  return {
      ErrorCode::kUnavailable,
      fmt::format("the adapter needs {} bytes of the pool; pinned adapters would take {} bytes, "
                  "over their limit of {} bytes; pin fewer or raise --pool-memory",
                  blocks * config_.block_bytes, wanted * config_.block_bytes,
                  config_.kept_limit * config_.block_bytes),
      "pinned"};
}

Pool::Pool(const PoolConfig& config, Mover& mover, const Clock& clock, PoolListener* listener)
    : config_(settled(config)),
      mover_(mover),
      clock_(clock),
      listener_(listener),
      swapper_(config.swapper),
      arena_(config.blocks),
      swap_(config.swap_blocks),
      tree_(arena_, swap_, config_.dependencies),
      now_(clock.now()),
      load_seconds_(static_cast<double>(config.block_bytes) / config.load_bandwidth),
      read_seconds_(static_cast<double>(config.block_bytes) / config.swap_bandwidth),
      step_seconds_(config.prefill_seconds_per_token, kBlockTokens * kBlockTokens),
      batch_at_(now_),
      sampled_at_(now_) {}

SwapStatistics Pool::statistics() const {
  SwapStatistics s;
  s.now = now_;
  s.slot = slot();
  s.requests = requests_.count(s.slot);
  s.batch = batch_;
  s.load = load_seconds_;
  s.read = read_seconds_;
  s.compute = step_seconds_.slope() * kBlockTokens;
  s.swaps = swaps();
  s.reuse = &reuse_;
  return s;
}

void Pool::note_step(int sequences) {
  const double age = seconds(now_ - batch_at_);
  batch_at_ = now_;
  batch_ += (sequences - batch_) * -std::expm1(-age / kBatchSeconds);
}

// Evicts an adapter; the caller has checked that it may leave.
void Pool::evict(AdapterNode& node) {
  tree_.release_blocks(node);
  ++totals_.adapters_left;
  if (listener_) listener_->on_left(node.key);
}

// The keys that a sequence may reuse: at least one token must be left to compute.
std::span<const Digest> Pool::reusable(std::span<const Digest> keys, int tokens) {
  return keys.first(std::min<size_t>(keys.size(), std::max(0, tokens - 1) / kBlockTokens));
}

// The resident prefix from which a sequence can continue.
std::vector<KvNode*> Pool::usable_prefix(const KvIdentity& identity, std::span<const Digest> keys) {
  std::vector<KvNode*> prefix = tree_.resident_prefix(tree_.find_root(identity.adapter), keys);
  if (config_.state_blocks > 0) truncate_to_checkpoint(prefix);
  return prefix;
}

int Pool::resident_tokens(const KvIdentity& identity, std::span<const Digest> keys) {
  return static_cast<int>(usable_prefix(identity, keys).size()) * kBlockTokens;
}

int32_t Pool::blocks_to_start(const KvIdentity& identity, std::span<const Digest> keys,
                              int tokens) {
  const int32_t alone = blocks_for(tokens) + config_.state_blocks;
  if (!config_.prefix_caching) return alone;
  const std::vector<KvNode*> prefix = usable_prefix(identity, reusable(keys, tokens));
  int32_t needed = alone;
  for (const KvNode* node : prefix) needed -= node->idle() ? 0 : 1;
  // The checkpoint cannot be evicted while it is read.
  if (config_.state_blocks > 0 && !prefix.empty() && tree_.idle_checkpoint(*prefix.back()))
    needed += config_.state_blocks;
  return std::min(alone, needed);
}

void Pool::hold_prefix(BlockTable& table, const KvIdentity& identity,
                       std::span<const Digest> keys) {
  if (!config_.prefix_caching) return;
  std::vector<KvNode*> prefix = tree_.resident_prefix(tree_.find_root(identity.adapter), keys);
  if (config_.state_blocks > 0) {
    table.branch = static_cast<int>(prefix.size());
    truncate_to_checkpoint(prefix);
    if (!prefix.empty()) table.start = tree_.hold_checkpoint(*prefix.back());
  }
  reserve_more(table.blocks, prefix.size());
  for (KvNode* node : prefix) {
    tree_.hold(*node);
    table.blocks.push_back(node->block);
  }
  table.committed = static_cast<int>(table.blocks.size());
}

Room Pool::start(Claim& claim, BlockTable& table, const KvIdentity& identity,
                 std::span<const Digest> keys, int tokens) {
  assert(table.blocks.empty());
  hold_prefix(table, identity, reusable(keys, tokens));
  Room room = reserve(table, tokens);
  if (room != Room::kReserved && !table.start.empty()) {
    const int branch = table.branch;
    drop(table);
    table.branch = branch;
    room = reserve(table, tokens);
  }
  if (room != Room::kReserved) {
    drop(table);
    return room;
  }
  record_reuse(table);
  drop(claim.prefix);
  visit_prefix(table, claim);
  if (config_.prefix_caching) {
    totals_.queried_tokens += tokens;
    totals_.hit_tokens += static_cast<uint64_t>(table.committed) * kBlockTokens;
  }
  return room;
}

Room Pool::reserve(BlockTable& table, int tokens) {
  const int32_t missing =
      std::max(0, blocks_for(tokens) - static_cast<int32_t>(table.blocks.size()));
  const int32_t state = table.state.empty() ? config_.state_blocks : 0;
  if (missing + state == 0) return Room::kReserved;
  reserve_more(table.blocks, missing);
  reserve_more(table.state, state);
  const Room room = make_room(Kind::kKv, missing + state);
  if (room != Room::kReserved) return room;
  for (int32_t i = 0; i < missing; ++i) table.blocks.push_back(*arena_.allocate());
  for (int32_t i = 0; i < state; ++i) table.state.push_back(*arena_.allocate());
  return room;
}

void Pool::commit(BlockTable& table, const KvIdentity& identity, std::span<const Digest> keys,
                  int computed) {
  if (!config_.prefix_caching) return;
  const int full = std::min(computed / kBlockTokens, static_cast<int>(keys.size()));
  if (full <= table.committed) return;
  // KV of an unloaded adapter is not kept.
  for (const AdapterNeed& need : identity.adapters)
    if (const AdapterNode* node = tree_.find_adapter(need.digest); node && node->forgotten) return;
  KvRoot& root = tree_.root(identity);
  struct Tidy {
    DependencyTree& tree;
    KvRoot& root;
    ~Tidy() { tree.erase_if_empty(root); }
  } const tidy{tree_, root};
  // Blocks of earlier keys may be missing: their nodes were still being filled, or have been
  // evicted.
  const auto shares = [&](int i) {
    const KvNode* node = tree_.find_resident(root, keys[i]);
    return node && node->block == table.blocks[i];
  };
  int first = table.committed;
  while (first > 0 && !shares(first - 1)) --first;
  for (int i = first; i < full; ++i) {
    KvNode* node = tree_.insert(root, keys.first(i + 1), table.blocks[i]);
    if (!node || !node->resident()) break;
    if (node->block != table.blocks[i]) adopt(table.blocks[i], *node);
    visit(*node);
    table.committed = std::max(table.committed, i + 1);
  }
  table.committed = full;
}

// Replaces a table's private block by the node's block with the same key. Otherwise the sequence
// would occupy two pool blocks per key, because the node stays as long as the blocks below it.
void Pool::adopt(BlockId& own, KvNode& node) {
  if (!node.held) reuse_.visit(ReuseModel::group_of(node), seconds(now_ - node.last_use));
  tree_.hold(node);
  tree_.release(std::exchange(own, node.block));
}

void Pool::release(BlockTable& table) {
  for (const BlockId block : table.blocks)
    if (KvNode* node = tree_.node_of(block)) node->last_use = now_;
  drop(table);
}

// Children before parents, so that without history each node becomes a leaf in turn.
void Pool::drop(BlockTable& table) {
  drop_states(table);
  for (auto block = table.blocks.rbegin(); block != table.blocks.rend(); ++block) {
    KvNode* node = tree_.release(*block);
    if (node && !config_.history && node->leaf >= 0 && node->flight == Flight::kNone) evict(*node);
  }
  table = {};
}

void Pool::expect(const AdapterNeed& need) {
  if (need.blocks == 0 || !config_.history) return;
  AdapterNode& node = tree_.adapter(need);
  if (!node.present() && !node.failure && free_for(Kind::kAdapter) >= node.size)
    load(node, Urgency::kAdapterOfRequest);
}

Status Pool::keep(const AdapterNeed& need, bool kept) {
  if (need.blocks == 0 || (!kept && !tree_.find_adapter(need.digest))) return {};
  AdapterNode& node = tree_.adapter(need);
  if (node.kept == kept) return {};
  const int32_t blocks = pinned_blocks_ + (kept ? need.blocks : -need.blocks);
  if (kept && blocks > config_.kept_limit) return pinned_limit_error(need.blocks, blocks);
  if (kept) reserve_more(kept_);
  pinned_blocks_ = blocks;
  tree_.keep(node, kept);
  std::erase(kept_, need.digest);
  if (kept && !node.present()) kept_.push_back(need.digest);
  return {};
}

void Pool::forget(const Digest& adapter) {
  AdapterNode* node = tree_.find_adapter(adapter);
  if (!node) return;
  (void)keep({adapter, node->size}, false);  // cannot fail
  reserve_more(pending_removals_);
  node->forgotten = true;
  if (std::ranges::find(pending_removals_, adapter) == pending_removals_.end())
    pending_removals_.push_back(adapter);
  if (node->pins == 0) drop_if_unused(*node);
}

bool Pool::resident(const Digest& adapter) const {
  const AdapterNode* node = tree_.find_adapter(adapter);
  return node && node->resident();
}

// ---- states besides KV: of running sequences, and the checkpoints of nodes ----

void Pool::truncate_to_checkpoint(std::vector<KvNode*>& prefix) {
  while (!prefix.empty() && prefix.back()->checkpoint.empty()) prefix.pop_back();
}

void Pool::release_all(std::vector<BlockId>& blocks) {
  for (const BlockId block : blocks) arena_.release(block);
  blocks.clear();
}

void Pool::drop_states(BlockTable& table) {
  tree_.release_checkpoint(table.start);
  release_all(table.state);
  for (auto& blocks : table.kept) release_all(blocks);
}

int Pool::reserve_checkpoints(BlockTable& table, int count) {
  for (auto& blocks : table.kept) release_all(blocks);
  for (int made = 0; made < count; ++made) {
    std::vector<BlockId>& blocks = table.kept[made];
    reserve_more(blocks, config_.state_blocks);
    if (make_room(Kind::kKv, config_.state_blocks) != Room::kReserved) return made;
    for (int32_t i = 0; i < config_.state_blocks; ++i) blocks.push_back(*arena_.allocate());
  }
  return count;
}

void Pool::record_state(BlockTable& table, int begin, std::span<const int> checkpoints) {
  tree_.release_checkpoint(table.start);
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    std::vector<BlockId>& blocks = table.kept[i];
    const int index = (begin + checkpoints[i]) / kBlockTokens - 1;
    KvNode* node = index < table.committed ? tree_.node_of(table.blocks[index]) : nullptr;
    if (node && node->resident() && node->checkpoint.empty())
      tree_.set_checkpoint(*node, std::exchange(blocks, {}));
  }
  for (auto& blocks : table.kept) release_all(blocks);
}

// For nodes that cannot be evicted now: sequences that hold their KV do not need the checkpoint.
bool Pool::drop_oldest_checkpoint() {
  KvNode* oldest = nullptr;
  for (KvNode* node : tree_.checkpoints())
    if (tree_.idle_checkpoint(*node) && (!oldest || node->last_use < oldest->last_use))
      oldest = node;
  if (oldest) tree_.drop_checkpoint(*oldest);
  return oldest != nullptr;
}

// ---- claims: request and pin the adapters and KV that a request needs before it starts ----

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
