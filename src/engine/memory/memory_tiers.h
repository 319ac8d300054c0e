// The memory that the pool manages: its blocks, the swap space, the adapters' files, and copies
// between them. A pool in GPU memory is backed by pinned host memory.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/adapters/adapter_store.h"
#include "engine/memory/memory_plan.h"
#include "engine/memory/pinned_blocks.h"
#include "engine/memory/tensor_cache.h"
#include "memory/mover.h"
#include "memory/swap_file.h"
#include "ops/attention/attention.h"
#include "ops/delta/state_arena.h"
#include "ops/device/device_copy.h"
#include "ops/device/pool_memory.h"
#include "serving/model_side.h"

namespace valora {

class MemoryTiers final : public serving::PoolBacking {
 public:
  // Allocates the pool and reserves the swap space. Errors name the option at fault. `model` must
  // outlive the tiers. Throws c10::Error or std::bad_alloc if memory runs out.
  static Result<std::unique_ptr<MemoryTiers>> make(const MemoryPlan& plan,
                                                   const EngineOptions& options,
                                                   const models::ModelSpec& spec,
                                                   at::ScalarType dtype, at::Device device,
                                                   const adapters::AdapterLimits& limits,
                                                   std::shared_ptr<const MergeBound> merges);

  const ops::KvArena& kv_arena(int rank) const { return kv_[static_cast<size_t>(rank)]; }
  // Absent if sequences have no state in addition to their KV.
  std::optional<ops::StateArena> states(int rank) const {
    return states_.empty() ? std::nullopt : std::optional(states_[static_cast<size_t>(rank)]);
  }
  // Null if adapters are not kept in the pool: with the reference kernels, and with a CUDA torch in
  // a build without CUDA kernels.
  AdapterStore* adapters() { return adapters_ ? &*adapters_ : nullptr; }

  // Thread-safe. kPool for every adapter if adapters() is null.
  serving::AdapterBackend::Residency residency(const Digest& adapter) const;

  Status copy(const memory::Move& move) override;

  void on_loaded(const Digest& adapter, const std::vector<memory::BlockId>& blocks) override;
  void on_left(const Digest& adapter) override;

 private:
  // The host side of a pool in GPU memory.
  struct HostTier {
    std::vector<ops::DeviceCopier> copiers;  // by rank
    // Packed adapters by content, the parts of all ranks in sequence, so that they are reloaded at
    // the full speed of the bus (guarded by cache_mutex_).
    TensorCache adapters;
    std::optional<PinnedBlocks> kv;  // the swap space; a block holds the parts of all ranks
  };

  MemoryTiers() = default;
  Status reserve_swap(const MemoryPlan& plan, const MemoryOptions& options);
  RankBlocks addresses(const std::vector<memory::BlockId>& blocks) const;
  Status load(const memory::Move& move);
  Status load_to_device(const memory::Move& move);
  at::Tensor cached(const memory::Move& move);
  Status copy_beside_file(const memory::Move& move);
  Status copy_beside_device(const memory::Move& move);
  // Starts the copies of all ranks, then waits for all of them.
  void copy_on_all(std::span<const std::vector<ops::Copy>> copies);

  // By rank: the pool knows a block by its number, under which each rank stores its part.
  std::vector<ops::PoolMemory> memory_;
  std::vector<ops::KvArena> kv_;
  std::vector<ops::StateArena> states_;  // by rank; empty without states
  std::vector<std::unique_ptr<memory::SwapFile>> swap_;
  size_t kv_bytes_ = 0;  // per block and rank
  std::optional<AdapterStore> adapters_;
  std::optional<HostTier> host_;
  mutable std::mutex cache_mutex_;
};

}  // namespace valora
