#include "engine/memory/memory_plan.h"

#include <algorithm>
#include <fstream>

#include "engine/start/dtype.h"
#include "memory/block_arena.h"
#include "models/decoder/delta_net.h"
#include "ops/device/pool_memory.h"
#include "ops/weights/panel_layout.h"

namespace valora {
namespace {

// Saturating product: options and configurations are not checked for overflow.
int64_t product(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

int64_t blocks_for(int64_t tokens) {
  return (tokens + memory::kBlockTokens - 1) / memory::kBlockTokens;
}

// Refuses a --pool-memory that leaves no room for steps.
Status check_pool(int64_t wanted, int64_t available, int64_t kept) {
  if (wanted <= available - kept) return {};
  std::string why = "--pool-memory asks for " + std::to_string(wanted) + " bytes, but " +
                    std::to_string(available) + " are free";
  if (kept > 0) {
    why += ", of which steps need about " + std::to_string(kept) + "; ";
    if (kept < available) why += "set it to at most " + std::to_string(available - kept) + ", or ";
    why += "lower --max-num-batched-tokens or --max-num-seqs";
  }
  return invalid(why, "pool_memory");
}

// Plans the share of pinned adapters, and the second tier.
Status plan_tiers(const MemoryOptions& options, MemoryPlan& plan) {
  if (options.swap_bytes < 0 || options.swap_bytes / plan.kv_block_bytes > INT32_MAX)
    return invalid("--swap-space must be 0 or above, and below 2^31 blocks", "swap_space");
  plan.swap_blocks = static_cast<int32_t>(options.swap_bytes / plan.kv_block_bytes);
  if (plan.state_blocks > 0 && plan.swap_blocks > 0) {
    plan.swap_blocks = 0;
    plan.notes.emplace_back(
        "--swap-space has no effect: what sequences of this model keep besides their KV does not "
        "go there, and KV alone is of no use without it");
  }
  const int64_t length = blocks_for(plan.max_model_len) + plan.state_blocks;
  plan.kept_limit =
      static_cast<int32_t>(std::clamp<int64_t>(plan.blocks - length, 0, plan.blocks / 4));
  return {};
}

}  // namespace

HostMemory host_memory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0, free = int64_t{4} << 30;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key != "MemAvailable:") continue;
    free = kib * 1024;
    break;
  }
  const auto limit = memory_limit(root);
  if (!limit || limit->left >= free) return {free, std::nullopt};
  return {limit->left, limit};
}

int64_t available_host_memory() { return host_memory().available; }

EngineOptions with_fitting_caches(EngineOptions options, int64_t available_bytes) {
  const EngineOptions defaults;
  const auto most = static_cast<size_t>(std::max<int64_t>(0, available_bytes / 8));
  const auto fit = [&](size_t& bytes, size_t usual) {
    if (bytes == usual) bytes = std::min(bytes, most);
  };
  fit(options.media_cache_bytes, defaults.media_cache_bytes);
  if (options.device == DeviceKind::kCpu)
    fit(options.visual_cache_bytes, defaults.visual_cache_bytes);
  return options;
}

Status check_kv_format(const EngineOptions& options, at::ScalarType dtype, at::Device device) {
  if (ops::serves_kv_format(kv_format_of(options), dtype, device)) return {};
  const std::string option = "--kv-cache-dtype " + name_of(options.kv_cache_dtype);
  return unprocessable(device.is_cpu()
                           ? option + " needs --kernels native"
                           : option + ": this build has no kernels for GPUs; leave it out",
                       "kv_cache_dtype");
}

BlockSizes block_sizes(const models::ModelSpec& spec, int max_lora_rank, at::ScalarType dtype,
                       ops::KvFormat kv_format, at::Device device, int ranks) {
  const int64_t kv = ops::KvArena::block_bytes(kv_shape(spec, ranks, dtype, kv_format), device);
  int64_t widest = 1;
  for (const adapters::Module& module : spec.modules.modules())
    if (module.kind == adapters::ModuleKind::kLinear)
      for (int rank = 0; rank < ranks; ++rank)
        widest = std::max(widest, slice_of(module, rank, ranks).in.size());
  // Ranks above the widest input occur in tests only, and would make every block larger.
  const int64_t rank = std::clamp<int64_t>(max_lora_rank, 1, std::max<int64_t>(widest, 64));
  const ops::WeightForm form = ops::paged_form(dtype, device).value_or(ops::WeightForm::kPanels);
  size_t panel = ops::largest_panel_bytes(widest, rank, dtype, form);
  // A KV block in 8 bits may be smaller than the panels of the widest inputs. Those panels are
  // split, so that blocks need not be larger than KV requires. Rows of the vocabulary and weights
  // in the plain form are not split.
  if (kernels::in_bytes(kv_format) && form == ops::WeightForm::kPanels)
    panel = std::min(
        panel, std::max(ops::largest_panel_bytes(std::min(widest, spec.hidden), rank, dtype, form),
                        ops::least_cut_block_bytes(dtype)));
  const kernels::StateShape state = models::state_shape(spec.state.part(ranks), dtype);
  panel = std::max(panel, ops::StateLayout::least_block_bytes(state));
  const auto pool = static_cast<int64_t>(ops::pool_block_bytes(static_cast<size_t>(kv), panel));
  return {ranks * pool, ranks * kv, ops::StateLayout(state, static_cast<size_t>(pool)).blocks()};
}

ops::KvShape kv_shape(const models::ModelSpec& spec, int ranks, at::ScalarType dtype,
                      ops::KvFormat kv_format) {
  const int64_t heads = adapters::share_of(spec.kv_heads, 0, ranks).size();
  return {spec.kv_layers(), heads, spec.head_dim, dtype, kv_format};
}

Result<MemoryPlan> plan_memory(const EngineOptions& options, const models::ModelSpec& spec,
                               const BlockSizes& sizes, int64_t available_bytes,
                               int64_t kept_bytes) {
  MemoryPlan plan;
  const int64_t block_bytes = plan.block_bytes = sizes.pool;
  plan.kv_block_bytes = sizes.kv;
  const int64_t state = plan.state_blocks = sizes.state_blocks;
  if (options.max_model_len && *options.max_model_len > spec.max_positions)
    return invalid("--max-model-len " + std::to_string(*options.max_model_len) +
                       " exceeds the model's limit of " + std::to_string(spec.max_positions),
                   "max_model_len");
  if (options.max_model_len && *options.max_model_len < 1)
    return invalid("--max-model-len must be at least 1", "max_model_len");
  const int64_t wanted_len = options.max_model_len.value_or(static_cast<int>(spec.max_positions));
  // Default: every sequence at full length plus 50 % for adapters and history, but at most a
  // quarter of the free memory.
  const int64_t everything = product(product(blocks_for(wanted_len) + state, options.max_num_seqs),
                                     product(block_bytes, 3) / 2);
  if (options.memory.pool_bytes)
    VALORA_CHECK(check_pool(*options.memory.pool_bytes, available_bytes, kept_bytes));
  // kept_bytes is an estimate, so it must not prevent a start on its own.
  const int64_t room = std::max(available_bytes - kept_bytes, available_bytes / 2);
  const int64_t budget = options.memory.pool_bytes.value_or(std::min(everything, room / 4));
  if (budget > available_bytes - kept_bytes)
    plan.notes.push_back("steps may need about " + std::to_string(kept_bytes) +
                         " bytes of the GPU's memory, but the pool leaves " +
                         std::to_string(available_bytes - budget) +
                         "; if they run out of it, lower --max-num-batched-tokens or "
                         "--max-num-seqs");
  const int64_t blocks = std::min<int64_t>(budget / block_bytes, INT32_MAX);
  if (blocks < 1 + state)
    return invalid("the pool needs at least " + std::to_string(1 + state) + " blocks of " +
                       std::to_string(block_bytes) + " bytes, but gets " + std::to_string(budget) +
                       " bytes; raise --pool-memory",
                   "pool_memory");
  if (blocks < blocks_for(wanted_len) + state) {
    const int64_t needed = product(blocks_for(wanted_len) + state, block_bytes);
    if (options.max_model_len)
      return invalid("the pool of " + std::to_string(budget) +
                         " bytes is too small for one sequence of --max-model-len " +
                         std::to_string(wanted_len) + "; set --pool-memory to at least " +
                         std::to_string(needed),
                     "pool_memory");
    plan.notes.push_back("--max-model-len was lowered from " + std::to_string(wanted_len) + " to " +
                         std::to_string((blocks - state) * memory::kBlockTokens) +
                         ", which fits into the pool; to keep it, set --pool-memory to " +
                         std::to_string(needed));
  }
  plan.blocks = static_cast<int32_t>(blocks);
  plan.max_model_len =
      static_cast<int>(std::min<int64_t>(wanted_len, (blocks - state) * memory::kBlockTokens));
  VALORA_CHECK(plan_tiers(options.memory, plan));
  return plan;
}

Result<int64_t> plan_caches(const EngineOptions& options, const models::ModelSpec& spec,
                            bool on_host, int64_t available_bytes) {
  if (!spec.image_token && !spec.video_token) return int64_t{0};
  const uint64_t media = on_host ? options.media_cache_bytes : 0;
  const uint64_t visual = options.visual_cache_bytes;
  const auto available = static_cast<uint64_t>(std::max<int64_t>(available_bytes, 0));
  if (media <= available && visual <= available - media)
    return static_cast<int64_t>(media + visual);
  return invalid("the caches of media ask for " + std::to_string(media) +
                     " bytes (--media-cache) and " + std::to_string(visual) +
                     " bytes (--visual-cache), but " + std::to_string(available) + " are free",
                 media <= available ? "visual_cache" : "media_cache");
}

Result<int64_t> plan_adapter_cache(const MemoryOptions& options, int64_t free_bytes) {
  const int64_t bytes = options.adapter_cache_bytes.value_or(
      std::min(int64_t{4} << 30, std::max<int64_t>(free_bytes - options.swap_bytes, 0) / 4));
  if (bytes >= 0 && options.swap_bytes <= free_bytes - bytes) return bytes;
  return invalid("--swap-space asks for " + std::to_string(options.swap_bytes) +
                     " bytes of host memory and --adapter-cache for " + std::to_string(bytes) +
                     ", but " + std::to_string(free_bytes) + " are free",
                 options.adapter_cache_bytes ? "adapter_cache" : "swap_space");
}

size_t largest_adapter() { return static_cast<size_t>(available_host_memory() / 3); }

Status check_shadow(const std::string& policy, int64_t shadow_bytes, int64_t available_bytes,
                    bool integers) {
  if (shadow_bytes <= available_bytes) return {};
  return invalid("--scheduling-policy " + policy + " with --merge shadow needs " +
                     std::to_string(shadow_bytes) + " bytes for merged weights, " +
                     std::to_string(shadow_bytes - available_bytes) + " more than are free; use " +
                     (integers ? "a policy that does not merge, such as unmerged"
                               : "--merge inplace, which needs none"),
                 "merge");
}

}  // namespace valora
