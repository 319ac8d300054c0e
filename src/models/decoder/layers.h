// Layers shared by all families. Constructors throw LoadError for a missing tensor or one of the
// wrong shape.
#pragma once

#include <ATen/ATen.h>

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "adapters/targets/module_table.h"
#include "models/batch.h"
#include "models/weights/weights.h"
#include "ops/linear/linear.h"

namespace valora::models {

// A linear layer: weight, bias, and its index in the module table, which selects the adapters and
// merged weights that apply to it.
class Linear {
 public:
  Linear() = default;
  // in, out: the model's sizes; with several ranks, this holds the rank's part. module: index in
  // the model's module table, or -1 if no adapter can target it.
  Linear(Weights& weights, const std::string& name, int64_t in, int64_t out, bool bias,
         int module = -1, LinearPart part = LinearPart::kOther,
         const adapters::Partition& partition = {});

  explicit Linear(ops::Weight weight) : weight_(std::move(weight)) {}

  // x: [T, in] → [T, out], the rank's inputs and outputs. If split by inputs, this is a collective
  // of all ranks and returns the full sums.
  at::Tensor operator()(const at::Tensor& x, const Adaptation& adaptation = {}) const;
  // The same in float, and this rank's part of the sums if split by inputs: not a collective, but
  // for the largest input of tokens that are rounded by a scale of their own.
  at::Tensor part(const at::Tensor& x, const Adaptation& adaptation) const;
  // The same in float. Ignores merged weights.
  at::Tensor wide(const at::Tensor& x, const ops::LoraBatch& lora) const {
    return ops::linear_float(x, {&weight_, module_}, lora);
  }

  const ops::Weight& weight() const { return weight_; }
  ops::Weight& weight() { return weight_; }
  int module() const { return module_; }
  // This rank's part of the model's linear.
  const LinearSlice& slice() const { return slice_; }
  // The ranks that its inputs are split over.
  const Shard& sums_over() const { return sums_over_; }

 private:
  ops::Weight weight_;
  int module_ = -1;
  LinearSlice slice_;
  Shard sums_over_;
};

// The sums over all ranks of parts in float, in place.
at::Tensor sum_of_ranks(const at::Tensor& parts, const Shard& shard);

// Applies linears to the same input in one launch, at most ops::kMaxSlices. One [T, out] tensor
// each.
std::vector<at::Tensor> project(const at::Tensor& x, std::initializer_list<const Linear*> linears,
                                const Adaptation& adaptation);
// activation(gate(x)) · up(x), [T, out]
at::Tensor gated(const at::Tensor& x, const Linear& gate, const Linear& up,
                 const Adaptation& adaptation, ops::Gate activation = ops::Gate::kSilu);

// Rows [begin, end) of a tensor and the linears that take them; up: of gated products only.
struct LinearRows {
  int64_t begin = 0, end = 0;
  const Linear *linear = nullptr, *up = nullptr;
  const Adaptation* adaptation = nullptr;  // of these rows
};
// Linears of equal sizes that each take rows of their own, in one launch. groups: adjacent, from
// row 0 to the last row of x. → [T, out]
at::Tensor grouped(const at::Tensor& x, std::span<const LinearRows> groups);
// As Linear::part(): float [T, out]. The linears are split over the same ranks.
at::Tensor grouped_part(const at::Tensor& x, std::span<const LinearRows> groups);
// activation(linear(x)) · up(x), [T, out]
at::Tensor grouped_gated(const at::Tensor& x, std::span<const LinearRows> groups,
                         ops::Gate activation);

// Places the weights of linears that are projected together so that a GPU multiplies them in one
// call (ops/weights/adjacent_weights.h). Call it after they are loaded.
void place_adjacent_linears(std::initializer_list<Linear*> linears);

class RmsNorm {
 public:
  RmsNorm() = default;
  // offset: added to the weight.
  RmsNorm(Weights& weights, const std::string& name, int64_t width, double eps, double offset = 0);
  // x: [..., width]; see ops::rms_norm.
  at::Tensor operator()(const at::Tensor& x) const;
  // x += delta in place. Returns the norm of the new x.
  at::Tensor add_and_norm(at::Tensor& x, const at::Tensor& delta) const;

 private:
  at::Tensor weight_;
  double eps_ = 0, offset_ = 0;
};

class LayerNorm {
 public:
  LayerNorm() = default;
  LayerNorm(Weights& weights, const std::string& name, int64_t width, double eps);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_;
  double eps_ = 0;
};

// The linear with this canonical name, which must be in the model's module table. Its index and
// sizes come from there, so that these are listed only once.
inline Linear table_linear(Weights& weights, const adapters::ModuleTable& table,
                           const std::string& name, bool bias) {
  const int index = table.find(name).value();
  const adapters::Module& module = table.modules()[static_cast<size_t>(index)];
  return Linear(weights, name, module.in, module.out, bias, index,
                module.in_decoder() ? LinearPart::kDecoder : LinearPart::kOther, module.partition);
}

}  // namespace valora::models
