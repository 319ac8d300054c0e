// Gated DeltaNet, a token mixer that keeps a recurrent state per sequence instead of keys and
// values (transformers: Qwen3_5GatedDeltaNet).
#pragma once

#include <string>
#include <vector>

#include "models/decoder/decoder_config.h"
#include "models/decoder/layers.h"
#include "ops/delta/gated_delta.h"

namespace valora::models {

// The state that one layer keeps per sequence, with activations in `dtype`.
kernels::StateShape state_shape(const StateSpec& state, at::ScalarType dtype);

class DeltaNet {
 public:
  // layer: its name prefix, ending in a dot.
  DeltaNet(Weights& weights, const adapters::ModuleTable& modules, const std::string& layer,
           const LayerConfig& config);
  // x: [T, hidden]. place: the index of this layer among those of its kind.
  at::Tensor operator()(const at::Tensor& x, int64_t place, const Batch& batch) const;
  void append_linears(std::vector<Linear*>& linears) {
    linears.insert(linears.end(), {&qkv_, &z_, &b_, &a_, &out_});
  }

 private:
  kernels::StateShape shape_;
  Linear qkv_, z_, b_, a_, out_;
  ops::DeltaWeights weights_;
};

// Appends the layer's linears and its convolution.
void add_delta_modules(const StateSpec& state, int64_t hidden, const std::string& layer,
                       int64_t index, std::vector<adapters::Module>& modules);

}  // namespace valora::models
