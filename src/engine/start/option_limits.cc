#include "engine/start/start_notes.h"

#include <fmt/format.h>

#include "ops/delta/gated_delta.h"

namespace valora {

Status check_limits(const EngineOptions& options) {
  if (options.max_num_seqs < 1) return invalid("--max-num-seqs must be at least 1", "max_num_seqs");
  if (options.max_num_batched_tokens < 1)
    return invalid("--max-num-batched-tokens must be at least 1", "max_num_batched_tokens");
  if (options.max_decode_gap && !(*options.max_decode_gap >= 0))
    return invalid("--max-decode-gap must not be negative", "max_decode_gap");
  if (options.max_lora_rank < 1 || options.max_lora_rank > 256)
    return invalid("--max-lora-rank must be between 1 and 256", "max_lora_rank");
  const SchedulingOptions& s = options.scheduling;
  if (!(s.tolerance >= 0))
    return invalid("--starvation-threshold must not be negative", "starvation_threshold");
  if (s.max_adapters < 0)
    return invalid("--max-adapters-per-step must not be negative", "max_adapters");
  return {};
}

Status check_needs(const EngineOptions& options, const models::ModelSpec& spec) {
  if (spec.experts.count > 0 && options.device == DeviceKind::kCuda)
    return invalid(
        fmt::format("--device cuda: there are no kernels for GPUs for the mixtures of experts that "
                    "{} has; use --device cpu",
                    spec.architecture),
        "device");
  if (spec.state.layers > 0 && options.device == DeviceKind::kCuda &&
      !ops::serves_states(at::kCUDA))
    return invalid(fmt::format("--device cuda: {} needs kernels for GPUs, which this build lacks",
                               spec.architecture),
                   "device");
  if (spec.state.layers > 0 && options.speculation.tokens > 0)
    return invalid(
        fmt::format("--speculative-config: {} keeps a state of each sequence, which cannot be "
                    "rolled back after wrong guesses; leave it out",
                    spec.architecture),
        "speculative_config");
  if (spec.joint_tokens == 0) return {};
  // It must fit together with the decode tokens of all other sequences, or a picture could wait
  // forever.
  const int64_t decodes = int64_t{options.max_num_seqs} * (1 + options.speculation.tokens),
                needed = spec.joint_tokens + decodes;
  if (options.max_num_batched_tokens >= needed) return {};
  return invalid(
      fmt::format("--max-num-batched-tokens {}: the {} tokens of a picture run in one step, "
                  "together with {} of other requests: raise it to at least {}, or lower "
                  "--max-num-seqs",
                  options.max_num_batched_tokens, spec.joint_tokens, decodes, needed),
      "max_num_batched_tokens");
}

}  // namespace valora
