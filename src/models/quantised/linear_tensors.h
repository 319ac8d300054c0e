// The stored tensors of one linear, as the readers of quantised weights see them.
#pragma once

#include <ATen/ATen.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "base/safetensors.h"

namespace valora::models {

class LinearTensors {
 public:
  virtual ~LinearTensors() = default;

  // part: the end of a tensor's name behind the linear's, as in "weight_packed".
  virtual const TensorView* find(const std::string& part) const = 0;
  // Of a part that there is, in the stored dtype; it counts as used.
  virtual at::Tensor read(const std::string& part) = 0;
  // False: shapes and dtypes are checked, but nothing is read.
  virtual bool reads() const = 0;
  // Throws LoadError: the folder, the tensor with its stored name, and why.
  [[noreturn]] virtual void fail(const std::string& part, const std::string& why) const = 0;

  bool has(const std::string& part) const { return find(part) != nullptr; }

  // A part that must be there, with one of the dtypes and one of the shapes. Undefined if nothing
  // is read.
  at::Tensor take(const std::string& part, std::initializer_list<DType> dtypes,
                  std::initializer_list<std::vector<int64_t>> shapes);
  // Scales as float: finite.
  at::Tensor take_scales(const std::string& part,
                         std::initializer_list<std::vector<int64_t>> shapes);
};

}  // namespace valora::models
