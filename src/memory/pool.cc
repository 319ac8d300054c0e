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

}  // namespace valora::memory
