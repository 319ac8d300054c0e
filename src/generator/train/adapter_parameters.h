// An adapter's values while it is trained: fp32 masters in one piece, and what a pass computes
// with.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "generator/train/adapter_shape.h"
#include "ops/lora.h"

namespace valora::generator {

// One tensor's place among the values.
struct ParameterSlot {
  std::string name;  // as PEFT writes it: "base_model.model.M.lora_A.weight",
                     // "base_model.model.score.weight"
  int64_t offset = 0, rows = 0, columns = 0;
  int64_t size() const { return rows * columns; }
};

class AdapterParameters {
 public:
  // A as PEFT begins (Kaiming's uniform over the inputs), B zero, heads as torch's Linear; all from
  // the seed.
  AdapterParameters(AdapterShape shape, const adapters::ModuleTable& modules,
                    at::ScalarType compute, at::Device device, uint64_t seed);

  const AdapterShape& shape() const { return shape_; }
  const std::vector<ParameterSlot>& slots() const { return slots_; }
  // fp32 [all slots' sizes]: what an optimizer changes, and the gradient of a step. refresh() after
  // a change.
  at::Tensor& values() { return values_; }
  const at::Tensor& values() const { return values_; }
  at::Tensor& gradient() { return gradient_; }

  // What a pass runs under: leaves of the compute dtype (heads: fp32), equal to the values rounded.
  const ops::AdapterWeights& weights() const { return weights_; }
  const at::Tensor& head(size_t index) const { return heads_[index]; }  // [labels, hidden]
  void refresh();
  // Adds what the last backward pass left in the leaves to gradient(), and empties them.
  void collect();

  // Values of a PEFT folder's tensors in the place of these; heads that it does not have stay as
  // they are, and so does what a lower rank leaves of A, beside zeros in B: its products are the
  // same. kUnprocessable where its modules, scales or labels are others than the shape's, or a rank
  // is higher.
  Status assign(const adapters::AdapterSpec& spec, const adapters::ModuleTable& modules);

 private:
  // A run of slots that a pass sees in one dtype.
  struct Leaves {
    at::Tensor values, gradient;
    int64_t offset = 0;
  };
  at::Tensor leaf(const Leaves& leaves, const ParameterSlot& slot) const;
  void add_slot(std::string name, int64_t rows, int64_t columns);

  AdapterShape shape_;
  std::vector<ParameterSlot> slots_;  // A and B of each module, then the heads
  at::Tensor values_, gradient_;
  Leaves low_rank_, wide_;
  ops::AdapterWeights weights_;
  std::vector<at::Tensor> heads_;
};

}  // namespace valora::generator
