// All linears of a 0.5 B decoder, and adapters on all of them, to benchmark whole steps.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "lab/ops/measurement.h"
#include "ops/linear/linear.h"

namespace valora::bench {

inline constexpr int64_t kDecoderHidden = 896, kDecoderKeyWidth = 128, kDecoderInner = 4864;

struct DecoderLinear {
  ops::Weight weight;
  int module;  // by layer, then in the order of DecoderLayer
};

struct DecoderLayer {
  DecoderLinear q, k, v, o, gate, up, down;

  auto linears() { return std::array{&q, &k, &v, &o, &gate, &up, &down}; }
  auto linears() const { return std::array{&q, &k, &v, &o, &gate, &up, &down}; }
};
inline constexpr int kLayerLinears = 7;

// bf16. All layers have equal values.
std::vector<DecoderLayer> make_decoder(int64_t layers);

// A, [rank, in], and B, [out, rank], of adapter `number` on one linear, in bf16.
struct AdapterValues {
  at::Tensor a, b;
};
AdapterValues adapter_values(const DecoderLinear& linear, int64_t rank, int number);
// In a single allocation, as in the engine.
ops::AdapterWeights make_adapter(std::span<const DecoderLayer> layers, int64_t rank, int number);

// [tokens, hidden], bf16.
at::Tensor decoder_input(int64_t tokens);
// Distributes the tokens evenly over the adapters, in contiguous runs, each with coefficient 0.5.
ops::LoraBatch even_segments(int64_t tokens, std::span<const ops::AdapterWeights> adapters);
// Runs the linears of one step. Returns the last layer's outputs.
at::Tensor run_linears(std::span<const DecoderLayer> layers, const at::Tensor& x,
                       const ops::LoraBatch& lora);
// The work of a step without adapters.
Work work_of(std::span<const DecoderLayer> layers, int64_t tokens);

}  // namespace valora::bench
