// The tensors of a checkpoint: model.safetensors or its shards, or a GGUF file. They are
// memory-mapped while a model is built, and read from the open files afterwards. Tensors are found
// under all name prefixes that versions of transformers have used.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/module_table.h"
#include "base/communicator.h"
#include "base/digest.h"
#include "base/gguf.h"
#include "base/result.h"
#include "base/safetensors.h"
#include "models/gguf_tensors.h"
#include "models/quantised/report.h"
#include "ops/quantise.h"
#include "ops/weight.h"

namespace valora::models {

class QuantisedConfig;
struct StoredLinear;

// What the decoder's linears that are stored in floats become when they are loaded: integers of 8
// or 4 bits with scales. The output layer has 8 bits with both.
enum class Quantise : uint8_t { kNone, kInt8, kInt4 };

// How a model that is served on CPUs deviates from its checkpoint.
struct Rounding {
  Quantise weights = Quantise::kNone;
  bool inputs = false;  // of linears in integers: to 8 bits in each product (ops/weight.h)
};

// Quantise applies to the decoder and its output layer; towers and projectors keep the compute
// dtype.
enum class LinearPart : uint8_t { kOther, kDecoder, kHead };

// Bytes of the weights in memory.
struct HeldBytes {
  size_t decoder = 0;  // its linears
  size_t head = 0;     // the output layer
  size_t other = 0;    // embeddings, norms, biases, towers
  size_t all() const { return decoder + head + other; }
};

// The part that a rank has of a linear [out, in].
struct LinearSlice {
  int64_t out = 0, in = 0;
  adapters::MatrixSlice has;
  static LinearSlice whole(int64_t out, int64_t in) { return {out, in, {{0, out}, {0, in}}}; }
  bool is_whole() const { return has.out.size() == out && has.in.size() == in; }
};

class Weights {
 public:
  // Opens DIR/model.safetensors.index.json and its shards, or DIR/model.safetensors, or a GGUF file
  // (find_gguf()).
  static Result<std::unique_ptr<Weights>> open(const std::string& dir);

  void set_target(at::ScalarType dtype, at::Device device) { dtype_ = dtype, device_ = device; }
  // For training: linears keep plain tensors, through which gradients flow, instead of the fastest
  // form for serving.
  void set_plain(bool plain) { plain_ = plain; }
  bool plain() const { return plain_; }
  // The rank whose model is built next. With several ranks, what is not split among them is one
  // copy that the models of all ranks share.
  void set_shard(const Shard& shard) { shard_ = shard; }
  const Shard& shard() const { return shard_; }
  void set_rounding(Rounding rounding) { rounding_ = rounding; }
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
  // which are stored as convolutions, by get(). For serving on CPUs, stored integers, and those of
  // set_rounding(), stay integers. Other quantised weights are decoded exactly as the checkpoint
  // says, and rounded once to the target dtype. Of a partition, the part of this rank; a linear
  // that is split by inputs has its bias on rank 0. Throws as get(), and for values that cannot
  // become integers.
  ops::Weight linear(const std::string& name, int64_t out, int64_t in, bool bias,
                     LinearPart part = LinearPart::kOther,
                     const adapters::Partition& partition = {});
  // Writes the stored values of linear() into `weight` again, which is this slice of it. Throws as
  // get(). Thread-safe.
  void refill(const std::string& name, ops::Weight& weight, const LinearSlice& slice);

  // Of a tensor that there is, by its canonical name.
  std::vector<int64_t> shape_of(const std::string& name) const { return find(name)->shape(); }
  // `count` values of a tensor that there is from index `first` on, [count], in the stored dtype;
  // of a GGUF file's blocks in float. Thread-safe. kUnprocessable if they cannot be read, are no
  // numbers of a float type, or if the file changed since it was opened.
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
  // Of what get() and linear() gave until now. On the meta device: of what would be given on CPUs.
  const HeldBytes& held() const { return held_; }
  // Whether linear() gave integers, over which nothing can be merged.
  bool keeps_integers() const { return keeps_integers_; }
  // Whether the checkpoint rounds the inputs of a linear that linear() gave.
  bool rounds_inputs() const { return rounds_inputs_; }
  // Digest of the name, the dtype, the shape and a sample of the values of every tensor. It tells
  // different checkpoints apart without reading gigabytes. Not after unmap().
  Digest sketch() const;
  // Stored names of the tensors that were never requested.
  std::vector<std::string> unused() const;

 private:
  class Parts;
  struct File {
    InputFile input;
    std::shared_ptr<const void> mapped;  // keeps the map; null after unmap()
  };
  // A tensor of a GGUF file that is not stored as transformers has it.
  struct GgufForm {
    GgufType type;
    std::vector<int64_t> shape;  // of its values
    GgufSource source;
  };
  struct Entry {
    TensorView view;  // without bytes after unmap(); of blocks: U8 [rows, bytes of a row]
    std::string stored_name;
    size_t file = 0;   // index into files_
    size_t begin = 0;  // of its bytes in the file
    std::shared_ptr<const GgufForm> gguf = {};

    const std::vector<int64_t>& shape() const { return gguf ? gguf->shape : view.shape; }
    bool has_blocks() const;
  };
  const Entry* find(const std::string& canonical) const;
  // The tensor as it is stored, of a float type. Throws as get().
  at::Tensor floats(const std::string& name, const std::vector<int64_t>& shape);
  // The values of an unquantised linear, in the target dtype and device; views of the mapped file
  // as view() gives them. Throws as get().
  at::Tensor stored_part(const std::string& name, const LinearSlice& slice);
  Status open_file(const std::string& path);
  // A file that was only renamed or removed is unchanged: it is still open.
  static Status check_unchanged(const InputFile& file);
  Status open_gguf(const std::string& path);
  // Whole rows of a tensor with a GgufForm, and whole heads if these are interleaved, as
  // transformers has them. Blocks are decoded to `dtype`.
  static at::Tensor restored(const Entry& entry, const at::Tensor& rows, at::ScalarType dtype);
  Result<at::Tensor> restored_values(const Entry& entry, size_t first, size_t count) const;
  StoredLinear block_linear(const Entry& entry, int64_t out, int64_t in);
  // Throws LoadError unless the configuration asks for the shape of the tensor.
  void check_shape(const Entry& entry, const std::vector<int64_t>& required) const;
  bool is_quantised() const { return quantisation_ != nullptr || has_blocks_; }
  at::Tensor stored(const Entry& entry) const;
  const std::string& path_of(const Entry& entry) const { return files_[entry.file].input.path(); }

  // All names of a linear, or of a prefix: the canonical one first.
  std::vector<std::string> names_of(const std::string& name) const;
  // Null if the checkpoint stores this linear in floats, or not at all. Throws LoadError.
  std::unique_ptr<StoredLinear> quantised_linear(const std::string& name, int64_t out, int64_t in);
  // The same of a rank's part.
  std::unique_ptr<StoredLinear> quantised_slice(const std::string& name, const LinearSlice& slice);
  // linear(), without the rounding of its inputs.
  ops::Weight weight_of(const std::string& name, const StoredLinear* quantised,
                        const LinearSlice& slice, bool bias, LinearPart part);
  // Throws LoadError where that cannot be done exactly.
  void round_inputs(const std::string& name, const StoredLinear& quantised, LinearPart part,
                    ops::Weight& weight);
  // Whether a linear is served in its stored integers; on the meta device: would be on CPUs.
  bool serves_integers(const StoredLinear& linear, int64_t in) const;
  // What set_rounding() makes of such linears.
  std::optional<ops::Quantisation> quantisation(LinearPart part) const;
  // A linear that is served in integers; absent: in floats. `stored`, of the slice, may be null.
  std::optional<ops::Weight> integer_linear(const std::string& name, const StoredLinear* stored,
                                            const LinearSlice& slice, const at::Tensor& bias,
                                            LinearPart part);
  // Values in the target dtype and device.
  at::Tensor decoded(const StoredLinear& linear, const LinearSlice& slice) const;
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
  bool plain_ = false, keeps_integers_ = false;
  bool rounds_inputs_ = false;
  bool has_blocks_ = false;  // of a GGUF file
  Shard shard_;
  // What get() and linear() gave that is not split, by name. Empty with one rank, and after
  // unmap().
  std::map<std::string, at::Tensor> shared_tensors_;
  std::map<std::string, ops::Weight> shared_linears_;
  std::mutex refilling_;
  Rounding rounding_;
  HeldBytes held_;
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
