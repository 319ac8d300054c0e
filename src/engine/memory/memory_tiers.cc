#include "engine/memory/memory_tiers.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <ctime>

#include "base/log/log.h"
#include "engine/start/dtype.h"
#include "models/decoder/delta_net.h"
#include "ops/device/devices.h"

namespace valora {
namespace {

// A failing disk fails for every block, so the lines become rarer: the 1st, 2nd, 4th, ….
void warn_of_swap(const Error& error) {
  static std::atomic<uint64_t> failures = 0;
  const uint64_t count = ++failures;
  if (std::has_single_bit(count))
    spdlog::warn("{}; the KV is computed again ({} such blocks so far)", error.message, count);
}

}  // namespace

Result<std::unique_ptr<MemoryTiers>> MemoryTiers::make(const MemoryPlan& plan,
                                                       const EngineOptions& options,
                                                       const models::ModelSpec& spec,
                                                       at::ScalarType dtype, at::Device device,
                                                       const adapters::AdapterLimits& limits,
                                                       std::shared_ptr<const MergeBound> merges) {
  std::unique_ptr<MemoryTiers> tiers(new MemoryTiers());
  const int ranks = options.tensor_parallel_size;
  const auto block_bytes = static_cast<size_t>(plan.block_bytes / ranks);
  const ops::StateLayout states(models::state_shape(spec.state.part(ranks), dtype), block_bytes);
  for (int rank = 0; rank < ranks; ++rank) {
    const at::Device own = ops::device_of_rank(device, rank);
    tiers->memory_.emplace_back(plan.blocks, block_bytes, own);
    if (spec.state.layers > 0) tiers->states_.emplace_back(tiers->memory_.back(), states, own);
    tiers->kv_.emplace_back(tiers->memory_.back(),
                            kv_shape(spec, ranks, dtype, kv_format_of(options)), own);
  }
  tiers->kv_bytes_ = static_cast<size_t>(plan.kv_block_bytes / ranks);
  if (const auto form = ops::paged_form(dtype, device))
    tiers->adapters_.emplace(spec.modules, limits, dtype, block_bytes, *form, ranks,
                             std::move(merges));
  if (!device.is_cpu()) {
    tiers->host_.emplace(
        HostTier{{}, TensorCache(static_cast<size_t>(plan.adapter_cache_bytes)), {}});
    for (int rank = 0; rank < ranks; ++rank)
      tiers->host_->copiers.emplace_back(ops::device_of_rank(device, rank));
  }
  VALORA_CHECK(tiers->reserve_swap(plan, options.memory));
  return tiers;
}

Status MemoryTiers::reserve_swap(const MemoryPlan& plan, const MemoryOptions& options) {
  if (plan.swap_blocks == 0) return {};
  if (host_) {
    host_->kv.emplace(plan.swap_blocks, kv_bytes_ * memory_.size());
    return {};
  }
  for (size_t rank = 0; rank < memory_.size(); ++rank) {
    VALORA_TRY(swap, memory::SwapFile::create(options.swap_dir, plan.swap_blocks, kv_bytes_));
    swap_.push_back(std::move(swap));
  }
  return {};
}

RankBlocks MemoryTiers::addresses(const std::vector<memory::BlockId>& blocks) const {
  RankBlocks addresses(memory_.size());
  for (size_t rank = 0; rank < memory_.size(); ++rank)
    for (const memory::BlockId block : blocks)
      addresses[rank].push_back(memory_[rank].block(block));
  return addresses;
}

Status MemoryTiers::copy(const memory::Move& move) {
  const bool loads = move.kind == memory::MoveKind::kLoadAdapter;
  if (loads) return load(move);
  if (host_) return copy_beside_device(move);
  Status status = copy_beside_file(move);
  if (!status.ok()) warn_of_swap(status.error());
  return status;
}

// A swapped block is complete once every rank has stored its part.
Status MemoryTiers::copy_beside_file(const memory::Move& move) {
  for (size_t rank = 0; rank < memory_.size(); ++rank) {
    const std::span block(memory_[rank].block(move.blocks[0]), kv_bytes_);
    VALORA_CHECK(move.kind == memory::MoveKind::kReadKv ? swap_[rank]->read(move.swapped, block)
                                                        : swap_[rank]->write(move.swapped, block));
  }
  return {};
}

Status MemoryTiers::load(const memory::Move& move) {
  const auto begin = std::chrono::steady_clock::now();
  VALORA_CHECK(host_ ? load_to_device(move) : adapters_->read(move.key, addresses(move.blocks)));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  adapters_->record_load(move.key, {taken.count(), std::time(nullptr)});
  return {};
}

serving::AdapterBackend::Residency MemoryTiers::residency(const Digest& adapter) const {
  if (!adapters_) return {};
  serving::AdapterBackend::Residency residency = adapters_->residency(adapter);
  if (residency.place != WeightsPlace::kFile || !host_) return residency;
  const auto content = adapters_->content_of(adapter);
  const std::lock_guard lock(cache_mutex_);
  if (content && host_->adapters.contains(*content)) residency.place = WeightsPlace::kHost;
  return residency;
}

// Undefined if the cache does not have it.
at::Tensor MemoryTiers::cached(const memory::Move& move) {
  const auto content = adapters_->content_of(move.key);
  if (!content) return {};
  const std::lock_guard lock(cache_mutex_);
  return host_->adapters.find(*content);
}

Status MemoryTiers::load_to_device(const memory::Move& move) {
  const size_t block_bytes = memory_[0].block_bytes();  // of one rank
  const auto bytes = static_cast<int64_t>(block_bytes);
  const auto count = static_cast<int64_t>(move.blocks.size()),
             all = count * static_cast<int64_t>(memory_.size());
  at::Tensor packed = cached(move);
  if (!packed.defined()) {
    // Rounded up to the allocator's actual size, so that the cache accounts for all of it.
    packed =
        ops::pinned_bytes(static_cast<int64_t>(std::bit_ceil(static_cast<size_t>(all * bytes))));
    RankBlocks blocks(memory_.size());
    for (int64_t i = 0; i < all; ++i)
      blocks[static_cast<size_t>(i / count)].push_back(static_cast<std::byte*>(packed.data_ptr()) +
                                                       i * bytes);
    VALORA_CHECK(adapters_->read(move.key, blocks));
    if (const auto content = adapters_->content_of(move.key)) {
      const std::lock_guard lock(cache_mutex_);
      host_->adapters.insert(*content, packed);
    }
  }
  std::vector<std::vector<ops::Copy>> copies(memory_.size());
  for (int64_t i = 0; i < all; ++i) {
    const auto rank = static_cast<size_t>(i / count), block = static_cast<size_t>(i % count);
    copies[rank].push_back({memory_[rank].bytes_of(move.blocks[block], block_bytes),
                            packed.narrow(0, i * bytes, bytes)});
  }
  copy_on_all(copies);
  return {};
}

void MemoryTiers::copy_on_all(std::span<const std::vector<ops::Copy>> copies) {
  std::vector<ops::CopyList> lists;
  for (size_t rank = 0; rank < copies.size(); ++rank)
    lists.push_back({host_->copiers[rank], copies[rank]});
  ops::copy_all(lists);
}

Status MemoryTiers::copy_beside_device(const memory::Move& move) {
  const at::Tensor swapped = host_->kv->block(move.swapped);
  const bool reads = move.kind == memory::MoveKind::kReadKv;
  std::vector<std::vector<ops::Copy>> copies;
  for (size_t rank = 0; rank < memory_.size(); ++rank) {
    const auto bytes = static_cast<int64_t>(kv_bytes_);
    const at::Tensor block = memory_[rank].bytes_of(move.blocks[0], kv_bytes_),
                     part = swapped.narrow(0, static_cast<int64_t>(rank) * bytes, bytes);
    copies.push_back({{reads ? block : part, reads ? part : block}});
  }
  copy_on_all(copies);
  return {};
}

void MemoryTiers::on_loaded(const Digest& adapter, const std::vector<memory::BlockId>& blocks) {
  adapters_->placed(adapter, addresses(blocks));
}

void MemoryTiers::on_left(const Digest& adapter) { adapters_->on_evicted(adapter); }

}  // namespace valora
