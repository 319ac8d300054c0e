#include "engine/start/start_notes.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/machine/control_groups.h"
#include "base/machine/cores.h"
#include "engine/start/dtype.h"
#include "models/decoder/delta_net.h"

namespace valora {
namespace {

void add_formats(const EngineOptions& options, const models::LoadedModel& loaded,
                 const MemoryPlan& plan, std::vector<std::string>& notes) {
  if (options.kv_cache_dtype != KvCacheDtype::kAuto) {
    std::string note = "keys and values are rounded to " + name_of(options.kv_cache_dtype);
    if (plan.block_bytes > plan.kv_block_bytes + plan.kv_block_bytes / 16)
      note += fmt::format(
          "; they use {} of a block's {} bytes, because a block must hold the largest panel of an "
          "adapter",
          plan.kv_block_bytes, plan.block_bytes);
    notes.push_back(std::move(note));
  }
  if (loaded.quantised) notes.push_back(loaded.quantised->text(dtype_name(loaded.dtype)));
  if (options.quantization != Quantization::kNone)
    notes.push_back("the decoder's linears are rounded to " + name_of(options.quantization));
  if (options.activations == Activations::kInt8)
    notes.emplace_back("inputs of linears in integers are rounded to 8 bits in each product");
}

}  // namespace

std::vector<std::string> memory_notes(const EngineOptions& options,
                                      const models::LoadedModel& loaded, const MemoryPlan& plan,
                                      const ReservedMemory& reserved) {
  std::vector<std::string> notes = plan.notes;
  if (reserved.gpu_bytes > 0)
    notes.push_back(fmt::format(
        "about {} MiB of the GPU's memory are kept for activations, workspaces and captured steps",
        reserved.gpu_bytes >> 20));
  add_formats(options, loaded, plan, notes);
  if (const int ranks = options.tensor_parallel_size; ranks > 1)
    notes.push_back(fmt::format("{} ranks share the decoder, each with {} compute threads", ranks,
                                at::get_num_threads()));
  const models::ModelSpec& spec = loaded.model->spec();
  if (plan.state_blocks > 0)
    notes.push_back(fmt::format(
        "a sequence keeps a state of {:.1f} MiB besides its KV, in {} blocks of the pool; so does "
        "each checkpoint of the prefix cache",
        static_cast<double>(models::state_shape(spec.state, loaded.dtype).bytes()) / (1 << 20),
        plan.state_blocks));
  if (spec.image_token || spec.video_token)
    notes.push_back(fmt::format(
        "caches of media: up to {} MiB of prepared pixels, {} MiB of embeddings (--media-cache, "
        "--visual-cache)",
        options.media_cache_bytes >> 20, options.visual_cache_bytes >> 20));
  if (reserved.shadow)
    notes.push_back(fmt::format(
        "merged weights take {} MiB besides the base model's{}", reserved.shadow_bytes >> 20,
        loaded.weights->keeps_integers() ? ": they are of the data type, not integers"
                                         : "; --merge inplace needs none"));
  return notes;
}

std::vector<std::string> group_notes(const EngineOptions& options, const std::string& root) {
  std::vector<std::string> notes;
  const auto quota = cpu_quota(root);
  if (quota && options.threads == 0 && quota->cpus < cores_of_affinity(root)) {
    const int threads = usable_cores(root);
    notes.push_back(fmt::format(
        "a CPU quota of {:.3g} CPUs was found ({}): {} compute thread{} by default (--threads)",
        quota->cpus, quota->file, threads, threads == 1 ? "" : "s"));
  }
  if (const auto limit = host_memory(root).limit)
    notes.push_back(
        fmt::format("a memory limit of {} MiB was found ({}): what it leaves counts as free memory",
                    limit->bytes >> 20, limit->file));
  return notes;
}

}  // namespace valora
