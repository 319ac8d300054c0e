// Adapters as projections read them: an adapter's table of modules, made when it is loaded, and a
// step's table of segments, made once per step and read by every layer.
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

// One adapter's products, by the model's module index.
class AdapterWeights {
 public:
  AdapterWeights() = default;
  // modules: of the model. None is touched yet.
  explicit AdapterWeights(size_t modules)
      : weights_(modules), table_(modules), touched_((modules + 63) / 64) {}

  // scale: alpha / rank and the like. All weights of an adapter share a form and a dtype.
  void set(int module, LoraWeight weight, float scale);
  // Moves panels into one memory (ops/lay_together.h). To be called before the adapter is used.
  void lay_together();

  // Null where the adapter does not touch the module.
  const LoraWeight* find(int module) const {
    return weights_[module] ? &*weights_[module] : nullptr;
  }
  float scale(int module) const { return table_[module].scale; }
  // What kernels read, an entry per module; `data` is null where weights are plain.
  std::span<const kernels::LoraModule> table() const { return table_; }
  // A bit per module: those that it touches.
  std::span<const uint64_t> touched() const { return touched_; }
  // One of the weights, for their form and dtype; null where no module is touched.
  const Weight* any() const { return any_ < 0 ? nullptr : &weights_[any_]->a; }

 private:
  std::vector<std::optional<LoraWeight>> weights_;
  std::vector<kernels::LoraModule> table_;
  std::vector<uint64_t> touched_;
  int any_ = -1;  // a module that it touches
};

// An adapter at a coefficient, which multiplies its own scales.
struct ScaledAdapter {
  const AdapterWeights* adapter = nullptr;
  float coefficient = 1;
};

// In training alone: the input of a low-rank product loses each of its values with this
// probability, the others grow by 1 / (1 - it). The seed decides which, so that a step that is
// computed again loses the same; every product has a seed of its own made of it.
struct Dropout {
  double probability = 0;
  uint64_t seed = 0;
};

// What the tokens of one flat batch run under. The adapters must outlive it and stay as they are.
class LoraBatch {
 public:
  // Tokens [token_begin, token_end) run under `adapter`; segments of one token add up. Extends the
  // segment of this adapter and coefficient that ends at token_begin, if there is one. Throws
  // c10::Error for a range that is none, and for an adapter of another model, form or dtype than
  // the others.
  void add(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
           float coefficient);
  void set_dropout(const Dropout& dropout) { dropout_ = dropout; }

  std::span<const kernels::LoraSegment> segments() const { return segments_; }
  const AdapterWeights& adapter(size_t segment) const { return *adapters_[segment]; }
  const Dropout& dropout() const { return dropout_; }
  // Whether any adapter touches the module; -1: a linear that none is served on.
  bool touches(int module) const {
    return module >= 0 && static_cast<size_t>(module) < 64 * touched_.size() &&
           (touched_[module / 64] >> (module % 64) & 1) != 0;
  }
  // No segment ends behind this token.
  int64_t token_end() const { return token_end_; }
  // One of the adapters' weights, for their form and dtype; null where no module is touched.
  const Weight* any() const { return any_; }

 private:
  std::vector<kernels::LoraSegment> segments_;
  std::vector<const AdapterWeights*> adapters_;  // of each segment
  std::vector<uint64_t> touched_;                // by any of them, a bit per module
  const Weight* any_ = nullptr;
  int64_t token_end_ = 0;
  Dropout dropout_;
};

}  // namespace valora::ops
