// Adapters in the form that projections read: a module table per adapter, built when it is loaded,
// and a segment table per step, which every layer reads.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/types/lora.h"
#include "ops/weight.h"

namespace valora::ops {

// One adapter on one linear.
struct LoraWeight {
  Weight a;  // [rank, in]
  Weight b;  // [out, rank]
};

// The weights of one adapter by module index of the model.
class AdapterWeights {
 public:
  AdapterWeights() = default;
  // modules: number of modules of the model. Initially the adapter touches none.
  explicit AdapterWeights(size_t modules)
      : weights_(modules), table_(modules), touched_((modules + 63) / 64) {}

  // scale: e.g. alpha / rank. All weights of an adapter must have the same layout and dtype.
  void set(int module, LoraWeight weight, float scale);
  // Moves the panels into one allocation (ops/lay_together.h). Call it before the adapter is used.
  void lay_together();

  // Null if the adapter does not touch the module.
  const LoraWeight* find(int module) const {
    return weights_[module] ? &*weights_[module] : nullptr;
  }
  float scale(int module) const { return table_[module].scale; }
  // The table for the kernels, one entry per module. `data` is null if the weights are plain.
  std::span<const kernels::LoraModule> table() const { return table_; }
  // One bit per module: whether the adapter touches it.
  std::span<const uint64_t> touched() const { return touched_; }
  // One of the weights, for its layout and dtype; null if no module is touched.
  const Weight* any() const { return any_ < 0 ? nullptr : &weights_[any_]->a; }

 private:
  std::vector<std::optional<LoraWeight>> weights_;
  std::vector<kernels::LoraModule> table_;
  std::vector<uint64_t> touched_;
  int any_ = -1;  // a touched module
};

// An adapter with a coefficient that multiplies its scales.
struct ScaledAdapter {
  const AdapterWeights* adapter = nullptr;
  float coefficient = 1;
};

// Dropout on the inputs of low-rank products, for training only. Kept values are multiplied by
// 1 / (1 - probability). The mask depends only on the seed, so recomputation drops the same values.
// Each product derives its own seed.
struct Dropout {
  double probability = 0;
  uint64_t seed = 0;
};

// The adapters of the tokens of one flat batch. The adapters must outlive it and not change.
class LoraBatch {
 public:
  // Applies `adapter` to tokens [token_begin, token_end). If several segments cover a token, their
  // products are summed. A segment of the same adapter and coefficient that ends at token_begin is
  // extended. Throws c10::Error if the range is invalid, or if the adapter's model, layout or dtype
  // differs from the others'.
  void add(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
           float coefficient);
  void set_dropout(const Dropout& dropout) { dropout_ = dropout; }

  std::span<const kernels::LoraSegment> segments() const { return segments_; }
  const AdapterWeights& adapter(size_t segment) const { return *adapters_[segment]; }
  const Dropout& dropout() const { return dropout_; }
  // Whether any adapter touches the module. False for -1.
  bool touches(int module) const {
    return module >= 0 && static_cast<size_t>(module) < 64 * touched_.size() &&
           (touched_[module / 64] >> (module % 64) & 1) != 0;
  }
  // The largest token_end of all segments.
  int64_t token_end() const { return token_end_; }
  // One of the adapters' weights, for its layout and dtype; null if no module is touched.
  const Weight* any() const { return any_; }

 private:
  std::vector<kernels::LoraSegment> segments_;
  std::vector<const AdapterWeights*> adapters_;  // per segment
  std::vector<uint64_t> touched_;                // one bit per module: touched by any adapter
  const Weight* any_ = nullptr;
  int64_t token_end_ = 0;
  Dropout dropout_;
};

}  // namespace valora::ops
