// The parameters of an adapter in training: fp32 master values in one tensor, and rounded copies
// for the forward pass.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "generator/train/adapter_shape.h"
#include "ops/lora/lora.h"

namespace valora::generator {

// The position of one tensor in the values.
struct ParameterSlot {
  // PEFT's name: "base_model.model.M.lora_A.weight", "base_model.model.score.weight".
  std::string name;
  int64_t offset = 0, rows = 0, columns = 0;  // [rows, columns] from element `offset` on
  int64_t size() const { return rows * columns; }
};

class AdapterParameters {
 public:
  // Initial values as in PEFT, drawn from the seed: A Kaiming-uniform, B zero, heads like
  // torch.nn.Linear.
  AdapterParameters(AdapterShape shape, const adapters::ModuleTable& table, at::ScalarType compute,
                    at::Device device, uint64_t seed);

  const AdapterShape& shape() const { return shape_; }
  const std::vector<ParameterSlot>& slots() const { return slots_; }
  // fp32, one-dimensional, all slots. The optimizer changes values(); call refresh() afterwards.
  // gradient() is the gradient of the current step.
  at::Tensor& values() { return values_; }
  const at::Tensor& values() const { return values_; }
  at::Tensor& gradient() { return gradient_; }

  // The leaves of the forward pass: values() rounded to the compute dtype; heads stay fp32.
  const ops::AdapterWeights& weights() const { return weights_; }
  const at::Tensor& head(size_t index) const { return heads_[index]; }  // [labels, hidden]
  void refresh();  // copies values() to the leaves
  // Adds the gradients of the leaves to gradient(), then zeroes them.
  void collect();

  // Replaces the values with those of a PEFT adapter. Heads that it lacks are unchanged. If its
  // rank is lower, the additional rows of A are unchanged and the additional columns of B become
  // zero, so the products are the same. kUnprocessable if its modules, scales or labels differ from
  // the shape's, or if its rank is higher.
  Status assign(const adapters::AdapterSpec& spec, const adapters::ModuleTable& modules);

 private:
  // Consecutive slots with the same dtype in the forward pass.
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
