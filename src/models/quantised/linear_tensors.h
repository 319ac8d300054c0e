// The stored tensors of one linear: the interface for readers of quantised weights.
#pragma once

#include <ATen/ATen.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "base/tensors/safetensors.h"

namespace valora::models {

class LinearTensors {
 public:
  virtual ~LinearTensors() = default;

  // part: the rest of a tensor's name after the linear's, as in "weight_packed".
  virtual const TensorView* find(const std::string& part) const = 0;
  // Reads an existing part in the stored dtype and marks it as used.
  virtual at::Tensor read(const std::string& part) = 0;
  // If false, shapes and dtypes are checked, but nothing is read.
  virtual bool reads() const = 0;
  // Throws a LoadError with the folder, the tensor's stored name, and `why`.
  [[noreturn]] virtual void fail(const std::string& part, const std::string& why) const = 0;

  bool has(const std::string& part) const { return find(part) != nullptr; }

  // Reads a required part, which must have one of the dtypes and one of the shapes. Undefined if
  // nothing is read.
  at::Tensor take(const std::string& part, std::initializer_list<DType> dtypes,
                  std::initializer_list<std::vector<int64_t>> shapes);
  // Reads scales as float; they must be finite.
  at::Tensor take_scales(const std::string& part,
                         std::initializer_list<std::vector<int64_t>> shapes);
};

}  // namespace valora::models
