// A mixture of experts in place of a layer's MLP (transformers: Qwen3MoeSparseMoeBlock,
// Qwen3VLMoeTextSparseMoeBlock, Qwen3_5MoeSparseMoeBlock). A router gives each token a probability
// per expert; the most likely ones compute, and their outputs are added with these weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/decoder/decoder_config.h"
#include "models/decoder/layers.h"

namespace valora::models {

// A gated MLP: an expert of a mixture.
struct Expert {
  Linear gate, up, down;
};

class Mixture {
 public:
  // layer: its name prefix, ending in a dot. Throws LoadError.
  Mixture(Weights& weights, const adapters::ModuleTable& modules, const std::string& layer,
          const MixtureConfig& config, int64_t hidden, ops::Gate activation);
  // x: [T, hidden] → [T, hidden]. Runs the experts that a token chooses, each once for all of its
  // tokens. With several ranks, each computes its part of every expert, and one all-reduce adds
  // them.
  at::Tensor operator()(const at::Tensor& x, const Adaptation& adaptation) const;
  void append_linears(std::vector<Linear*>& linears);

 private:
  // The output of the shared expert, added to y; if y is a rank's part, in float, a part as well.
  at::Tensor with_shared(const at::Tensor& x, const at::Tensor& y,
                         const Adaptation& adaptation) const;

  MixtureConfig config_;
  Shard ranks_;
  ops::Gate activation_;
  Linear router_;
  std::vector<Expert> experts_;
  std::optional<Expert> shared_;
  Linear shared_gate_;
};

// Appends the router, the experts' linears and those of the shared expert.
void add_mixture_modules(const MixtureConfig& mixture, int64_t hidden, const std::string& layer,
                         int64_t index, std::vector<adapters::Module>& modules);

}  // namespace valora::models
