// A checkpoint's tensors: model.safetensors or its shards, memory-mapped, found under any of the
// name prefixes that transformers versions have used.
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
  // Reads DIR/model.safetensors.index.json, or DIR/model.safetensors.
  static Result<std::unique_ptr<Weights>> open(const std::string& dir);

  void set_target(at::ScalarType dtype, at::Device device) { dtype_ = dtype, device_ = device; }
  // Linears keep their tensors as they are, which gradients flow through, in the place of the form
  // that serves fastest.
  void set_plain(bool plain) { plain_ = plain; }
  bool plain() const { return plain_; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }
  void set_aliases(std::vector<adapters::PrefixAlias> aliases) { aliases_ = std::move(aliases); }

  // A tensor by its canonical name, of this very shape, in the target dtype and device. Where the
  // file has that dtype already it is a view of the map. Missing or of another shape: throws
  // LoadError.
  at::Tensor get(const std::string& name, const std::vector<int64_t>& shape);
  bool has(const std::string& name) const { return find(name) != nullptr; }

  // Tensors that the model has but never reads, by the beginning of their canonical names.
  void leave_out(const std::string& prefix);

  // The dtype that most of the checkpoint's bytes are in.
  at::ScalarType stored_dtype() const;
  int64_t parameters() const;
  size_t bytes() const;
  // Of every tensor's name, dtype and shape and of a sample of its values: checkpoints trained
  // apart differ in it, and it costs no reading of gigabytes.
  Digest sketch() const;
  // Names that nothing asked for, as they stand in the file.
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

// safetensors' dtype as ATen's; only floating ones hold weights.
std::optional<at::ScalarType> scalar_type(DType dtype);
// A tensor over mapped bytes (copied only where they are not aligned for the dtype).
at::Tensor tensor_of(const TensorView& view);

}  // namespace valora::models
