// The tensors of a checkpoint: model.safetensors or its shards, memory-mapped. Tensors are found
// under all name prefixes that versions of transformers have used.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "adapters/module_table.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/safetensors.h"

namespace valora::models {

class Weights {
 public:
  // Opens DIR/model.safetensors.index.json and its shards, or DIR/model.safetensors.
  static Result<std::unique_ptr<Weights>> open(const std::string& dir);

  void set_target(at::ScalarType dtype, at::Device device) { dtype_ = dtype, device_ = device; }
  // For training: linears keep plain tensors, through which gradients flow, instead of the fastest
  // form for serving.
  void set_plain(bool plain) { plain_ = plain; }
  bool plain() const { return plain_; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }
  void set_aliases(std::vector<adapters::PrefixAlias> aliases) { aliases_ = std::move(aliases); }

  // A tensor by its canonical name, in the target dtype and device. It is a view of the mapped file
  // if that has the dtype. Throws LoadError if it is missing or has another shape.
  at::Tensor get(const std::string& name, const std::vector<int64_t>& shape);
  bool has(const std::string& name) const { return find(name) != nullptr; }

  // Marks the tensors with this prefix as used: the model has them, but never reads them.
  void leave_out(const std::string& prefix);

  // The dtype of most bytes of the checkpoint.
  at::ScalarType stored_dtype() const;
  int64_t parameters() const;
  size_t bytes() const;
  // Digest of the name, the dtype, the shape and a sample of the values of every tensor. It tells
  // different checkpoints apart without reading gigabytes.
  Digest sketch() const;
  // Stored names of the tensors that were never requested.
  std::vector<std::string> unused() const;

 private:
  struct Entry {
    const TensorView* view;
    std::string stored_name;
  };
  const Entry* find(const std::string& canonical) const;

  std::string dir_;
  std::vector<std::shared_ptr<const SafeTensors>> files_;
  std::map<std::string, Entry> entries_;  // by stored name
  std::set<std::string> used_;
  std::vector<adapters::PrefixAlias> aliases_;
  at::ScalarType dtype_ = at::kFloat;
  at::Device device_ = at::kCPU;
  bool plain_ = false;
};

// The ATen dtype of a safetensors dtype; absent for those that are not floating-point.
std::optional<at::ScalarType> scalar_type(DType dtype);
// A tensor over the mapped bytes; a copy only if they are not aligned for the dtype.
at::Tensor tensor_of(const TensorView& view);

}  // namespace valora::models
