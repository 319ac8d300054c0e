#include "engine/memory_tiers.h"

namespace valora {

Result<std::unique_ptr<MemoryTiers>> MemoryTiers::make(const MemoryPlan& plan,
                                                       const EngineOptions& options,
                                                       const models::ModelSpec& spec,
                                                       at::ScalarType dtype, at::Device device,
                                                       const adapters::AdapterLimits& limits) {
  std::unique_ptr<MemoryTiers> tiers(new MemoryTiers());
  const auto block_bytes = static_cast<size_t>(plan.block_bytes);
  tiers->memory_ = ops::PoolMemory(plan.blocks, block_bytes, dtype, device);
  tiers->kv_ = ops::KvArena(tiers->memory_.data(), tiers->memory_.stride(), spec.layers,
                            spec.kv_heads, spec.head_dim);
  tiers->kv_bytes_ = static_cast<size_t>(plan.kv_block_bytes);
  if (tiers->kv_.form() == ops::WeightForm::kPanels)
    tiers->adapters_.emplace(spec.modules, limits, dtype, block_bytes);
  if (plan.swap_blocks > 0) {
    VALORA_TRY(swap, memory::SwapFile::create(options.memory.swap_dir, plan.swap_blocks,
                                              tiers->kv_bytes_));
    tiers->swap_ = std::move(swap);
  }
  return tiers;
}

std::vector<std::byte*> MemoryTiers::addresses(const std::vector<memory::BlockId>& blocks) const {
  std::vector<std::byte*> addresses;
  for (const memory::BlockId block : blocks) addresses.push_back(memory_.block(block));
  return addresses;
}

Status MemoryTiers::copy(const memory::Move& move) {
  if (move.kind == memory::MoveKind::kLoadAdapter)
    return adapters_->read(move.key, addresses(move.blocks));
  const std::span block(memory_.block(move.blocks[0]), kv_bytes_);
  return move.kind == memory::MoveKind::kReadKv ? swap_->read(move.swapped, block)
                                                : swap_->write(move.swapped, block);
}

void MemoryTiers::on_loaded(const Digest& adapter, const std::vector<memory::BlockId>& blocks) {
  adapters_->placed(adapter, addresses(blocks));
}

void MemoryTiers::on_left(const Digest& adapter) { adapters_->displaced(adapter); }

}  // namespace valora
