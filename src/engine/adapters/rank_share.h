// The part of an adapter that one rank holds (S-LoRA §6). For a linear split by outputs: all of A
// and the rank's outputs of B. For one split by inputs: the rank's inputs of A and all of B; its
// products are partial sums that the ranks add together with the base model's. So adapters need no
// communication of their own. Towers run on rank 0 only, so it holds their adapters alone.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "adapters/adapter_spec.h"
#include "ops/lora/lora.h"
#include "ops/weights/panel_layout.h"

namespace valora {

class RankShare {
 public:
  // modules must outlive it.
  RankShare(const adapters::ModuleTable& modules, int rank, int ranks)
      : modules_(modules), rank_(rank), ranks_(ranks) {}

  // The shapes of the adapter's targets on this rank, in order.
  std::vector<ops::LoraShape> shapes(const adapters::AdapterSpec& spec) const;
  // Writes the panels of these targets to blocks. layout: made from shapes().
  void write(const adapters::AdapterSpec& spec, const ops::PanelLayout& layout,
             std::span<std::byte* const> blocks) const;
  // Sets the adapter's changes to outputs other than its low-rank products.
  void set_outputs(const adapters::AdapterSpec& spec, ops::AdapterWeights& weights) const;

 private:
  bool has(int module) const;
  adapters::MatrixSlice slice(int module) const;

  const adapters::ModuleTable& modules_;
  int rank_, ranks_;
};

}  // namespace valora
