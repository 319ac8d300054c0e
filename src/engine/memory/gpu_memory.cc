#include "engine/memory/gpu_memory.h"

#include <algorithm>

#include "models/towers/encoding.h"
#include "ops/step/step_bounds.h"

namespace valora {
namespace {

// cuBLAS workspaces on the streams of steps and of captures (32 MiB each on an H100, and as much
// for cuBLASLt), and kernels, which are loaded on first use.
constexpr double kLibraries = 256 << 20;
// Launches, workspaces and tables of 128 captured steps.
constexpr double kCapturedSteps = 320 << 20;
// torch's allocator rounds sizes up and cannot use every gap between blocks.
constexpr double kGaps = 1.25;
constexpr int64_t kPromptRows = 64;  // rows of a scored prompt whose logits are computed at once
// For pictures that are large but common: 1,792 x 1,792 pixels in Qwen2.5-VL. A larger one uses
// free memory or fails without harming others.
constexpr double kPatches = 1 << 14;

struct Widths {
  double widest = 0;  // the most outputs of any linear
  double narrowest_in = 0;
};

Widths widths_of(const models::ModelSpec& spec, bool visual) {
  Widths widths;
  for (const adapters::Module& m : spec.modules.modules()) {
    if (m.visual != visual || m.kind != adapters::ModuleKind::kLinear) continue;
    widths.widest = std::max(widths.widest, static_cast<double>(m.out));
    if (m.layer >= 0 &&
        (widths.narrowest_in == 0 || static_cast<double>(m.in) < widths.narrowest_in))
      widths.narrowest_in = static_cast<double>(m.in);
  }
  return widths;
}

// Residual, norm, and either the gate, up and gated values of an MLP, or queries, keys, values and
// the output of attention. integers: the weights are; gate and up then also exist as unrounded
// sums.
double activation_bytes(const EngineOptions& options, const models::ModelSpec& spec, double size,
                        double rows, bool integers) {
  const auto heads = static_cast<double>(2 * spec.heads + 4 * spec.kv_heads);
  const auto dim = static_cast<double>(spec.head_dim);
  const double values =
      4.0 * static_cast<double>(spec.hidden) + 3 * widths_of(spec, false).widest + heads * dim;
  const double sums = integers ? 2 * widths_of(spec, false).widest : 0;
  const double floats = 2 * dim + 3.0 * options.max_lora_rank + sums;  // rotary, low-rank
  return rows * (values * size + floats * 4);
}

double most_rows(const EngineOptions& options, const models::ModelSpec& spec) {
  const double most = static_cast<double>(options.max_num_seqs) *
                      static_cast<double>(std::max<int64_t>(spec.max_positions, 1));
  return std::min(most, static_cast<double>(options.max_num_batched_tokens));
}

// Captured steps compute in their own memory, padded to the tokens of their bounds. All share
// the embeddings and hidden states of the largest one.
double captured_bytes(const EngineOptions& options, const models::ModelSpec& spec, double size,
                      bool integers) {
  const double most = std::min<double>(most_rows(options, spec), ops::kMostStepTokens);
  const auto rows = ops::padded_tokens(static_cast<int64_t>(most)).value_or(ops::kMostStepTokens);
  return activation_bytes(options, spec, size, rows, integers) +
         2.0 * ops::kMostStepTokens * static_cast<double>(spec.hidden) * size;
}

double logit_bytes(const EngineOptions& options, const models::ModelSpec& spec) {
  const auto rows = static_cast<double>(std::max<int64_t>(options.max_num_seqs, kPromptRows));
  return 2 * rows * static_cast<double>(spec.vocab) * sizeof(float);
}

// All rows with their queries, keys and values; then one piece of them in an MLP.
double tower_bytes(const models::ModelSpec& spec, double size) {
  if (!spec.image_token && !spec.video_token) return 0;
  const Widths widths = widths_of(spec, true);
  const auto piece = static_cast<double>(models::kGpuPieces.most_rows);
  return size * (4 * kPatches * widths.narrowest_in + 3 * piece * widths.widest);
}

}  // namespace

int64_t gpu_working_bytes(const EngineOptions& options, const models::ModelSpec& spec,
                          at::ScalarType dtype, bool integers) {
  const auto size = static_cast<double>(c10::elementSize(dtype));
  const double step = activation_bytes(options, spec, size, most_rows(options, spec), integers) +
                      logit_bytes(options, spec);
  // A tower runs between steps, while captured steps keep their memory.
  const double computed =
      std::max(step, tower_bytes(spec, size)) + captured_bytes(options, spec, size, integers);
  return static_cast<int64_t>(std::min(kGaps * computed + kLibraries + kCapturedSteps, 9e18));
}

}  // namespace valora
