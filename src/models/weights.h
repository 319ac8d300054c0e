// The tensors of a checkpoint: model.safetensors or its shards. They are memory-mapped while a
// model is built, and read from the open files afterwards. Tensors are found under all name
// prefixes that versions of transformers have used.
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
#include "models/quantised/report.h"
#include "ops/weight.h"

namespace valora::models {

class QuantisedConfig;
struct StoredLinear;

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
  // How the folder stores quantised linears; null: it has none. Not after unmap().
  void set_quantisation(std::shared_ptr<const QuantisedConfig> config);

  // A tensor by its canonical name, in the target dtype and device, in memory of its own; with
  // set_plain(), as view() gives it. Throws LoadError if it is missing or has another shape, or if
  // its file changed since it was opened.
  at::Tensor get(const std::string& name, const std::vector<int64_t>& shape);
  // The same, but a view of the mapped file if that has the dtype: valid until unmap(), and for
  // files that do not change only.
  at::Tensor view(const std::string& name, const std::vector<int64_t>& shape);
  bool has(const std::string& name) const { return find(name) != nullptr; }
  // Whether there are weights of this linear, quantised or not.
  bool has_linear(const std::string& name) const;
  // The linear [out, in] with this canonical name (without ".weight"), in the form that is fastest
  // for serving; with set_plain(), as plain tensors. Its memory is its own, as get() gives it.
  // Models take their linears from here, whatever the checkpoint stores them as; patch embeddings,
  // which are stored as convolutions, by get(). Quantised weights are decoded exactly as the
  // checkpoint says, and rounded once to the target dtype.
  ops::Weight linear(const std::string& name, int64_t out, int64_t in, bool bias);
  // Writes the stored values of linear() into `weight` again. Throws as get().
  void refill(const std::string& name, ops::Weight& weight);

  // Of a tensor that there is, by its canonical name.
  std::vector<int64_t> shape_of(const std::string& name) const { return find(name)->view.shape; }
  // `count` values of a tensor that there is from index `first` on, [count], in the stored dtype.
  // Thread-safe. kUnprocessable if they cannot be read, are no numbers of a float type, or if the
  // file changed since it was opened.
  Result<at::Tensor> stored_values(const std::string& name, size_t first, size_t count) const;

  // Marks the tensors with this prefix as used: the model has them, but never reads them.
  void leave_out(const std::string& prefix);

  // Ends the maps. What is requested later is read from the files, which are still those that were
  // opened, under whatever names. kUnprocessable if one changed since then.
  Status unmap();

  // The dtype of most bytes of the checkpoint's floats of 16 bits and more.
  at::ScalarType stored_dtype() const;
  // Those of a quantised linear are its weights, not the scales.
  int64_t parameters() const;
  size_t bytes() const;
  // The linears that linear() gave until now; absent if the folder is not quantised.
  std::optional<QuantisedReport> quantised() const;
  // Digest of the name, the dtype, the shape and a sample of the values of every tensor. It tells
  // different checkpoints apart without reading gigabytes. Not after unmap().
  Digest sketch() const;
  // Stored names of the tensors that were never requested.
  std::vector<std::string> unused() const;

 private:
  class Parts;
  struct File {
    InputFile input;
    std::shared_ptr<const SafeTensors> mapped;  // null after unmap()
  };
  struct Entry {
    TensorView view;  // without bytes after unmap()
    std::string stored_name;
    size_t file = 0;   // index into files_
    size_t begin = 0;  // of its bytes in the file
  };
  const Entry* find(const std::string& canonical) const;
  Status open_file(const std::string& path);
  at::Tensor stored(const Entry& entry) const;
  const std::string& path_of(const Entry& entry) const { return files_[entry.file].input.path(); }

  // All names of a linear, or of a prefix: the canonical one first.
  std::vector<std::string> names_of(const std::string& name) const;
  // Null if the checkpoint stores this linear in floats, or not at all. Throws LoadError.
  std::unique_ptr<StoredLinear> quantised_linear(const std::string& name, int64_t out, int64_t in);
  // Those of a linear in the target dtype and device.
  at::Tensor decoded(const StoredLinear& linear, int64_t out, int64_t in) const;
  // Counts a bias of zeros as used: older GPTQ folders have one for linears without.
  void pass_over_zero_bias(const std::string& name);
  // Why a tensor may be missing: it is stored quantised. Empty if it is not.
  std::string quantised_hint(const std::string& name) const;
  // The parameters in one stored tensor.
  int64_t parameters_in(const Entry& entry) const;

  std::string dir_;
  std::vector<File> files_;
  std::map<std::string, Entry> entries_;  // by stored name
  std::set<std::string> used_;
  std::vector<adapters::PrefixAlias> aliases_;
  at::ScalarType dtype_ = at::kFloat;
  at::Device device_ = at::kCPU;
  bool plain_ = false;
  std::shared_ptr<const QuantisedConfig> quantisation_;
  std::map<std::string, int64_t> packed_;  // parameters by the stored name of their words
  QuantisedReport quantised_;
};

// The ATen dtype of a safetensors dtype of weights: absent for integers and floats of 8 bits.
std::optional<at::ScalarType> scalar_type(DType dtype);
at::ScalarType stored_type(DType dtype);  // of any
// A tensor over the view's bytes; a copy only if they are not aligned for the dtype.
at::Tensor tensor_of(const TensorView& view);

}  // namespace valora::models
