// Layers shared by all families. Constructors throw LoadError for a tensor that is missing or of
// another shape.
#pragma once

#include <ATen/ATen.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "adapters/module_table.h"
#include "models/batch.h"
#include "models/weights.h"
#include "ops/linear.h"

namespace valora::models {

// A linear layer: weight, bias and its index in the module table, by which adapters and merged
// weights apply.
class Linear {
 public:
  Linear() = default;
  // module: index in the model's module table, or -1 if no adapter can target it.
  Linear(Weights& weights, const std::string& name, int64_t in, int64_t out, bool bias,
         int module = -1, LinearPart part = LinearPart::kOther);

  explicit Linear(ops::Weight weight) : weight_(std::move(weight)) {}

  // x: [T, in] → [T, out]
  at::Tensor operator()(const at::Tensor& x, const Adaptation& adaptation = {}) const;
  // The same in float. Weights with adapters merged do not count.
  at::Tensor wide(const at::Tensor& x, const ops::LoraBatch& lora) const {
    return ops::linear_float(x, {&weight_, module_}, lora);
  }

  const ops::Weight& weight() const { return weight_; }
  ops::Weight& weight() { return weight_; }
  int module() const { return module_; }

 private:
  ops::Weight weight_;
  int module_ = -1;
};

// Linears of the same input in one launch, at most ops::kMaxSlices. One [T, out] tensor per linear.
std::vector<at::Tensor> project(const at::Tensor& x, std::initializer_list<const Linear*> linears,
                                const Adaptation& adaptation);
// silu(gate(x)) · up(x), [T, out]
at::Tensor gated(const at::Tensor& x, const Linear& gate, const Linear& up,
                 const Adaptation& adaptation);

class RmsNorm {
 public:
  RmsNorm() = default;
  RmsNorm(Weights& weights, const std::string& name, int64_t width, double eps);
  at::Tensor operator()(const at::Tensor& x) const;
  // x += delta in place. Returns the norm of the new x.
  at::Tensor after_adding(at::Tensor& x, const at::Tensor& delta) const;

 private:
  at::Tensor weight_;
  double eps_ = 0;
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

}  // namespace valora::models
