// One memory pool for adapters and KV cache (S-LoRA §4, FastLibra §4–5). It maintains the tree of
// adapters and KV blocks, allocates blocks to sequences, reads in whatever requests need, and moves
// the rest by expected time saved. Copies run on a Mover; nothing here blocks.
//
// A failed allocation leaves the pool consistent. Table and claim then keep what they have obtained
// so far; release() and unclaim(), which need no memory, return it.
//
// Not thread-safe: only the engine thread uses it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "memory/block_arena.h"
#include "memory/claim.h"
#include "memory/dependency_tree.h"
#include "memory/identity.h"
#include "memory/mover.h"
#include "memory/pool_stats.h"
#include "memory/running_slope.h"
#include "memory/swapper.h"

namespace valora::memory {

struct PoolConfig {
  int32_t blocks = 0;
  int32_t swap_blocks = 0;  // swap space in KV blocks; 0: none
  int64_t block_bytes = 1;
  bool prefix_caching = true;
  // Blocks of a sequence's state besides its KV; 0: none. With a state, there is no swap space, and
  // a stored prefix is usable only up to a checkpoint of its state.
  int32_t state_blocks = 0;

  SwapperConfig swapper;
  Duration period = std::chrono::milliseconds(100);  // between the swapper's plans
  Duration window = std::chrono::minutes(5);         // over which visits are counted
  // For comparisons, which no option of a server sets. They change the pool in so many places that
  // a seam for them would be larger than they are. dependencies: an adapter stays as long as KV
  // below it (FastLibra); without them, KV whose adapter is absent still saves its recomputation.
  // history: KV stays after its request ends, and an adapter after its last request (false: as in
  // S-LoRA). adapter_blocks: a fixed share for adapters, the rest for KV (as in vLLM); it turns
  // dependencies off.
  bool dependencies = false;
  bool history = true;
  std::optional<int32_t> adapter_blocks;
  int32_t kept_limit = 0;  // most blocks that kept adapters may occupy

  // Initial estimates, until moves and prefills have been measured.
  double load_bandwidth = 1e9;  // bytes/s
  double swap_bandwidth = 1e9;  // bytes/s
  double prefill_seconds_per_token = 1e-3;
};

// Notified on the engine thread when adapters enter or leave the pool.
class PoolListener {
 public:
  virtual ~PoolListener() = default;
  virtual void on_loaded(const Digest& adapter, const std::vector<BlockId>& blocks) = 0;
  // The adapter's blocks no longer belong to it.
  virtual void on_left(const Digest& adapter) = 0;
};

enum class Room : uint8_t {
  kReserved,
  kSoon,  // enough blocks are about to be freed: retry after advance()
  kNone,
};

class Pool {
 public:
  // All references must outlive the pool. listener: may be null.
  Pool(const PoolConfig& config, Mover& mover, const Clock& clock,
       PoolListener* listener = nullptr);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Collects results of finished moves and, every `period`, plans new ones. Call it before each
  // step.
  void advance();
  // True while copies are running.
  bool moving() const { return !moves_.empty(); }
  // True if advance() has work to do even without new requests: running copies, or copies that the
  // swapper plans.
  bool has_pending_work() const { return moving() || last_plan_moved_; }

  // Requests. -----------------------------------------------------------------------------------
  // Pins the adapters of a request, and starts loading absent adapters and reading KV of its prefix
  // (keys, for `tokens` tokens) from the swap space. Call it before each step until the request
  // runs.
  Readiness claim(Claim& claim, const KvIdentity& identity, std::span<const Digest> keys,
                  int tokens);
  // Releases the claim. Cancels loads that no other claim is waiting for.
  void unclaim(Claim& claim);

  // Tokens of the sequence's prefix now in the pool, in whole blocks.
  int resident_tokens(const KvIdentity& identity, std::span<const Digest> keys);
  // How many of the available_blocks() start() would use. Changes nothing.
  int32_t blocks_to_start(const KvIdentity& identity, std::span<const Digest> keys, int tokens);
  // Fills an empty table with the sequence's resident prefix and extends it to `tokens` tokens. For
  // models with a state, the prefix ends at its last checkpoint, which the table then references,
  // or is dropped if the pool has no room for both. The prefix is table.committed whole blocks, at
  // most tokens - 1 tokens, because the last token must be computed to yield logits. The claim must
  // be ready; KV that it holds moves to the table. The table stays empty unless kReserved is
  // returned.
  Room start(Claim& claim, BlockTable& table, const KvIdentity& identity,
             std::span<const Digest> keys, int tokens);
  // Extends the table to `tokens` tokens, evicting idle nodes if needed. Changes the table only if
  // kReserved is returned.
  Room reserve(BlockTable& table, int tokens);
  // Stores the blocks that are full after `computed` tokens in the tree. If another sequence stored
  // a key first, the table drops its own block for that one. The claim must be ready.
  void commit(BlockTable& table, const KvIdentity& identity, std::span<const Digest> keys,
              int computed);
  void release(BlockTable& table);

  // States. -------------------------------------------------------------------------------------
  int32_t state_blocks() const { return config_.state_blocks; }
  // Allocates blocks for up to `count` checkpoints that the sequence's next step writes, replacing
  // any reserved before, as far as there is room. Returns the number of checkpoints reserved.
  int reserve_checkpoints(BlockTable& table, int count);
  // Call after a step has written the table's state and these checkpoints, and after commit().
  // checkpoints: for each, ascending, how many rows of the step precede it; the step's first row is
  // token `begin` of the sequence. Drops a checkpoint whose node is not in the tree or already has
  // one. Allocates no memory.
  void record_state(BlockTable& table, int begin, std::span<const int> checkpoints);

  // Adapters. -----------------------------------------------------------------------------------
  // Loads an adapter ahead of its requests if there is room.
  void expect(const AdapterNeed& need);
  // Loads an adapter as soon as there is room and never evicts it; false: allows eviction again.
  // kUnavailable: kept adapters would exceed kept_limit.
  Status keep(const AdapterNeed& need, bool kept);
  // The adapter was unloaded: removes it and its KV as soon as no request uses them. A later claim
  // for the same content cancels this.
  void forget(const Digest& adapter);
  // True if the adapter is completely in the pool.
  bool resident(const Digest& adapter) const;

  // Measurements. -------------------------------------------------------------------------------
  void note_step(int sequences);
  // Records the time of a step that computed this many prompt tokens, possibly none.
  void record_prefill(int tokens, double seconds) { step_seconds_.add(tokens, seconds); }

  // Sizes, in blocks. ---------------------------------------------------------------------------
  bool prefix_caching() const { return config_.prefix_caching; }
  bool swaps() const { return swap_.total_blocks() > 0; }
  int32_t total_blocks() const { return arena_.total_blocks(); }
  // The most blocks that sequences, or adapters, can occupy.
  int32_t kv_limit() const;
  int32_t adapter_limit() const;
  // Upper bound on the tokens of one sequence that needs `adapters`; 0: the adapters do not fit.
  int64_t max_tokens(std::span<const AdapterNeed> adapters = {}) const;
  // Blocks that reserve() can obtain, now or soon: free blocks and blocks of idle nodes.
  int32_t available_blocks() const;
  // The share of the pool held by requests, 0 … 1.
  double usage() const;
  // Resizes the pool, within total_blocks(). For tests of memory pressure.
  void set_capacity(int32_t blocks) { arena_.set_capacity(blocks); }

  PoolStats stats() const;
  const DependencyTree& tree() const { return tree_; }
  // Checks arenas, tree and moves, and that reference counts match `tables` and `claims`, which
  // must cover all requests. Returns an empty string, or the first violation. For
  // tests.
  std::string check(std::span<const BlockTable* const> tables,
                    std::span<const Claim* const> claims) const;

 private:
  enum class Kind : uint8_t { kAdapter, kKv };
  struct Under {  // a move in flight
    AnyNode node;
    MoveKind kind;
    int64_t bytes;
  };

  // A node to evict, by key because it may be removed before its turn.
  struct Victim {
    Digest key;
    bool adapter = false;
    TimePoint last_use{}, awaited_until{};
  };
  static Victim victim_of(const AnyNode& any);
  std::optional<AnyNode> find_victim(const Victim& victim);

  Slot slot() const { return VisitWindow::slot_of(now_, config_.window); }
  SwapStatistics statistics() const;

  class HeldPrefix;

  // pool.cc
  void adopt(BlockId& own, KvNode& node);
  void drop(BlockTable& table);
  static std::span<const Digest> reusable(std::span<const Digest> keys, int tokens);
  std::vector<KvNode*> usable_prefix(const KvIdentity& identity, std::span<const Digest> keys);
  void hold_prefix(BlockTable& table, const KvIdentity& identity, std::span<const Digest> keys);
  void evict(AdapterNode& node);
  Error pinned_limit_error(int32_t blocks, int32_t wanted) const;

  // pool.cc: states
  static void truncate_to_checkpoint(std::vector<KvNode*>& prefix);
  void drop_states(BlockTable& table);
  void release_all(std::vector<BlockId>& blocks);
  bool drop_oldest_checkpoint();

  // pool.cc: claims
  Readiness claim_adapters(Claim& claim, const KvIdentity& identity);
  Readiness claim_kv(const KvIdentity& identity, std::span<const Digest> keys);
  KvNode* next_of(std::span<KvNode* const> path, const KvIdentity& identity,
                  std::span<const Digest> keys);
  void drop_if_unused(AdapterNode& node);

  // pool_moves.cc: room
  int32_t free_for(Kind kind) const;
  int32_t idle_for(Kind kind) const;
  int32_t over_capacity() const;
  Room make_room(Kind kind, int32_t blocks);
  std::optional<AnyNode> next_victim(Kind kind, int32_t blocks);
  bool is_next_victim(const AnyNode& any) const;
  void begin_eviction(const AnyNode& any, Urgency urgency);
  bool save(KvNode& node, Urgency urgency);
  bool make_swap_room();
  void evict(KvNode& node);
  void evict_ancestors(KvNode* node);

  // pool_moves.cc: moves
  void start_move(Move move, AnyNode node);
  Room load(AdapterNode& node, Urgency urgency);
  bool fill(KvNode& node, Urgency urgency);
  void finish(const MoveResult& result);
  void finish_load(AdapterNode& node, const Status& status);
  std::optional<Error> announce(const AdapterNode& node);
  void finish_read(KvNode& node, const Status& status);
  void finish_write(KvNode& node, const Status& status);
  void unwind(KvNode& node);
  void measure(const Under& move, const MoveResult& result);
  void plan();
  void plan_for(Kinds kinds, int32_t used, int32_t capacity);
  void retry_pinned_and_removed();

  // pool_moves.cc: reuse
  void sample_idle_times();
  void visit(TreeNode& node);
  void visit_adapter(AdapterNode& node);
  void visit_prefix(const BlockTable& table, Claim& claim);
  void record_reuse(const BlockTable& prefix);

  const PoolConfig config_;
  Mover& mover_;
  const Clock& clock_;
  PoolListener* const listener_;
  Swapper swapper_;
  BlockArena arena_;
  BlockArena swap_;
  DependencyTree tree_;
  std::unordered_map<uint64_t, Under> moves_;
  uint64_t next_move_ = 1;
  TimePoint now_{};
  TimePoint next_plan_{};
  bool last_plan_moved_ = false;
  std::deque<Victim> victims_[2];  // per Kind, valid until victims_end_
  TimePoint victims_end_[2]{};
  std::vector<Digest> kept_, pending_removals_;  // adapters to load, and to remove
  int32_t pinned_blocks_ = 0;
  VisitWindow requests_;
  double load_seconds_, read_seconds_;  // per block, moving average
  RunningSlope step_seconds_;           // per prompt token computed in a step
  double batch_ = 0;                    // mean over the last seconds
  TimePoint batch_at_{};
  ReuseModel reuse_;
  TimePoint sampled_at_{};
  int32_t sampled_ = 0;      // the last block visited by sample_idle_times()
  Slot last_fade_slot_ = 0;  // slot of the last fade
  PoolStats totals_;
};

}  // namespace valora::memory
