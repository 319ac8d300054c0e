// The memory behind the pool's book-keeping: its blocks, the swap space and the adapters' files,
// and the copies between them. Behind a pool in a GPU's memory lies pinned host memory.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/adapter_store.h"
#include "engine/memory_plan.h"
#include "engine/pinned_blocks.h"
#include "engine/tensor_cache.h"
#include "memory/mover.h"
#include "memory/swap_file.h"
#include "ops/attention.h"
#include "ops/device_copy.h"
#include "ops/pool_memory.h"
#include "ops/state_arena.h"
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
                                                   const adapters::AdapterLimits& limits);

  const ops::KvArena& kv_arena(int rank) const { return kv_[static_cast<size_t>(rank)]; }
  // Absent if the model's sequences have no state besides their KV.
  const std::optional<ops::StateArena>& states() const { return states_; }
  // Null if adapters are not in the pool: with the reference kernels, and with a CUDA torch in a
  // build without CUDA kernels.
  AdapterStore* adapters() { return adapters_ ? &*adapters_ : nullptr; }

  // Thread-safe. Adapters that are not in the pool are where the model reads them.
  serving::AdapterBackend::Residency residency(const Digest& adapter) const;

  Status copy(const memory::Move& move) override;

  void on_loaded(const Digest& adapter, const std::vector<memory::BlockId>& blocks) override;
  void on_left(const Digest& adapter) override;

 private:
  // Of a pool in the memory of a GPU.
  struct HostTier {
    ops::DeviceCopier copier;
    TensorCache adapters;            // packed, by content: they come back at the speed of the bus
                                     // (cache_mutex_)
    std::optional<PinnedBlocks> kv;  // the swap space
  };

  MemoryTiers() = default;
  Status reserve_swap(const MemoryPlan& plan, const MemoryOptions& options);
  RankBlocks addresses(const std::vector<memory::BlockId>& blocks) const;
  Status load(const memory::Move& move);
  Status load_to_device(const memory::Move& move);
  at::Tensor cached(const memory::Move& move);
  Status copy_beside_device(const memory::Move& move);

  // By rank: the books know a block by its number, under which each rank has its part.
  std::vector<ops::PoolMemory> memory_;
  std::vector<ops::KvArena> kv_;
  std::optional<ops::StateArena> states_;  // of one rank
  std::vector<std::unique_ptr<memory::SwapFile>> swap_;
  size_t kv_bytes_ = 0;  // of a block on one rank
  std::optional<AdapterStore> adapters_;
  std::optional<HostTier> host_;
  mutable std::mutex cache_mutex_;
};

}  // namespace valora
