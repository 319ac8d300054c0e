#include "lab/trace/gpu_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace valora::bench {
namespace {

struct Decoder {
  const char* name;
  double layers, hidden, inner, heads, kv_heads, head_dim, vocabulary;
};
constexpr Decoder kDecoders[] = {
    {"7b", 32, 4096, 11008, 32, 32, 128, 151936},
    {"34b", 60, 7168, 20480, 56, 8, 128, 64000},
};

constexpr double kBytes = 0.8 * 2.04e12, kOperations = 0.6 * 312e12;  // per second and GPU
constexpr double kLink = 0.77 * 300e9;                                // bytes per second
constexpr double kCollective = 10e-6;                                 // seconds, without the bytes
constexpr double kMemory = 0.9 * 80e9, kActivations = 1e9;            // bytes per GPU
constexpr double kValue = 2;                                          // bytes
constexpr double kBlockTokens = 16;
constexpr double kCall = 5e-4, kSwitch = 1e-3;  // as in a100_costs()

// Per layer: weights of the linears split by outputs and by inputs, and the sums of their inputs
// and outputs.
struct Linears {
  double weights = 0;
  double outputs_split_in = 0, outputs_split_out = 0;
  double inputs_split_in = 0, inputs_split_out = 0;
};

Linears linears_of(const Decoder& d) {
  const double q = d.heads * d.head_dim, kv = d.kv_heads * d.head_dim;
  return {.weights = d.hidden * (q + 2 * kv) + q * d.hidden + 3 * d.hidden * d.inner,
          .outputs_split_in = 5 * d.hidden,
          .outputs_split_out = q + 2 * kv + 2 * d.inner,
          .inputs_split_in = q + d.inner,
          .inputs_split_out = 2 * d.hidden};
}

scheduler::StepCosts costs_of(const Decoder& d, double ranks) {
  const Linears linears = linears_of(d);
  const double weights = d.layers * linears.weights, output = d.vocabulary * d.hidden;
  const double bytes = kBytes * ranks, operations = kOperations * ranks;
  const double collectives = ranks > 1 ? 2 * d.layers : 0;
  const double factors = d.layers * (linears.outputs_split_in + linears.outputs_split_out / ranks +
                                     linears.inputs_split_in / ranks + linears.inputs_split_out);
  scheduler::StepCosts costs;
  costs.step = kValue * (weights + output) / bytes + collectives * kCollective;
  costs.token = collectives * 2 * (ranks - 1) / ranks * d.hidden * kValue / kLink;
  costs.free_tokens = kOperations / kBytes;
  costs.prefill_token = 2 * weights / operations;
  costs.decode_token = 2 * (weights + output) / operations;
  costs.prefill_context = 4 * d.layers * d.heads * d.head_dim / operations;
  costs.decode_context = 2 * d.layers * d.kv_heads * d.head_dim * kValue / bytes;
  costs.segment = kCall;
  costs.rank = factors * kValue / kBytes;
  costs.token_rank = 2 * factors / kOperations;
  costs.switching = kSwitch;
  costs.merge = 2 * weights * kValue / bytes;  // reads and writes them
  costs.merged_rank = 2 * weights / operations;
  costs.restore = costs.merge;
  return costs;
}

}  // namespace

std::vector<std::string> simulated_models() {
  std::vector<std::string> names;
  for (const Decoder& d : kDecoders) names.emplace_back(d.name);
  return names;
}

Result<SimulatedGpus> simulated_gpus(const std::string& model, int ranks) {
  const auto* const d = std::ranges::find(kDecoders, model, &Decoder::name);
  if (d == std::end(kDecoders))
    return invalid(
        fmt::format("unknown model '{}'; known: {}", model, fmt::join(simulated_models(), ", ")));
  if (ranks < 1 || static_cast<int>(d->heads) % ranks != 0 ||
      static_cast<int>(d->kv_heads) % ranks != 0)
    return invalid(
        fmt::format("the {:.0f} and {:.0f} heads of {} do not divide evenly among {} "
                    "ranks",
                    d->heads, d->kv_heads, model, ranks));
  const double embeddings = d->vocabulary * d->hidden;
  const double weights = d->layers * linears_of(*d).weights + embeddings;
  const double left = (kMemory - kActivations) * ranks - kValue * (weights + embeddings);
  const double block = 2 * d->layers * d->kv_heads * d->head_dim * kValue * kBlockTokens;
  if (left < block)
    return invalid(fmt::format("{} does not fit into the memory of {} GPUs", model, ranks));
  return SimulatedGpus{costs_of(*d, ranks), static_cast<int32_t>(left / block)};
}

}  // namespace valora::bench
