// What one rank has of an adapter (S-LoRA §6): of a linear that is split by outputs all of A and
// the outputs of B, of one that is split by inputs the inputs of A and all of B, whose products are
// parts of sums that the ranks add with those of the base model. So adapters need no communication
// of their own. What only rank 0 computes, the towers, rank 0 has alone.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "adapters/adapter_spec.h"
#include "ops/lora.h"
#include "ops/panel_layout.h"

namespace valora {

class RankShare {
 public:
  // modules must outlive it.
  RankShare(const adapters::ModuleTable& modules, int rank, int ranks)
      : modules_(modules), rank_(rank), ranks_(ranks) {}

  // Of the adapter's targets that the rank has, in order.
  std::vector<ops::LoraShape> shapes(const adapters::AdapterSpec& spec) const;
  // Writes the panels of these targets to blocks. layout: of shapes().
  void write(const adapters::AdapterSpec& spec, const ops::PanelLayout& layout,
             std::span<std::byte* const> blocks) const;
  // What the adapter makes of outputs, beside its low-rank products.
  void set_outputs(const adapters::AdapterSpec& spec, ops::AdapterWeights& weights) const;

 private:
  bool has(int module) const;
  adapters::MatrixSlice slice(int module) const;

  const adapters::ModuleTable& modules_;
  int rank_, ranks_;
};

}  // namespace valora
