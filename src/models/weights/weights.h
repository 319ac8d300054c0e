// The tensors of a checkpoint: model.safetensors or its shards, or GGUF files. Memory-mapped while
// a model is built, then read from the open files. Tensors are found under every name prefix that
// versions of transformers have used.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/targets/module_table.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/tensors/gguf.h"
#include "base/tensors/safetensors.h"
#include "base/threads/communicator.h"
#include "models/quantised/report.h"
#include "models/weights/gguf_tensors.h"
#include "ops/weights/quantised_tensor.h"
#include "ops/weights/weight.h"

namespace valora::models {

class QuantisedConfig;
struct StoredLinear;

// How a model served on CPUs deviates from its checkpoint.
struct Rounding {
  // How the decoder's float linears are quantised on load; absent: not at all. The output layer
  // gets 8 bits.
  std::optional<ops::Quantisation> weights;
  bool inputs =
      false;  // round integer linears' inputs to 8 bits per product (ops/weights/weight.h)
};

// Rounding::weights applies to the decoder and its output layer; towers and projectors keep the
// compute dtype.
enum class LinearPart : uint8_t { kOther, kDecoder, kHead };

// The weights' size in memory, in bytes.
struct HeldBytes {
  size_t decoder = 0;  // its linears
  size_t head = 0;     // the output layer
  size_t other = 0;    // embeddings, norms, biases, towers
  size_t all() const { return decoder + head + other; }
};

// A rank's part of a linear [out, in].
struct LinearSlice {
  int64_t out = 0, in = 0;
  adapters::MatrixSlice has;
  static LinearSlice whole(int64_t out, int64_t in) { return {out, in, {{{0, out}}, {0, in}}}; }
  bool is_whole() const { return has.out.size() == out && has.in.size() == in; }
};

class Weights {
 public:
  // Opens DIR/model.safetensors.index.json and its shards, DIR/model.safetensors, or GGUF files
  // (open_gguf_model()).
  static Result<std::unique_ptr<Weights>> open(const ModelSource& source);

  void set_target(at::ScalarType dtype, at::Device device) { dtype_ = dtype, device_ = device; }
  // For training: linears stay plain tensors that support gradients, instead of the fastest form
  // for serving. Those that set_rounding() makes integers hold the decoded values.
  void set_plain(bool plain) { plain_ = plain; }
  bool plain() const { return plain_; }
  // Selects the rank whose model is built next. With several ranks, weights that are not split
  // among them are stored once and shared by the models of all ranks; on GPUs they are on the
  // device of rank 0, which alone computes with them.
  void set_shard(const Shard& shard) { shard_ = shard; }
  const Shard& shard() const { return shard_; }
  void set_rounding(Rounding rounding) { rounding_ = rounding; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }
  void set_aliases(std::vector<adapters::PrefixAlias> aliases) { aliases_ = std::move(aliases); }
  // How the folder stores quantised linears; null: it has none. Must not be called after unmap().
  void set_quantisation(std::shared_ptr<const QuantisedConfig> config);

  // A tensor by its canonical name, in the target dtype and device, in its own memory; with
  // set_plain(), the same as view(). Throws LoadError if it is missing, has another shape, or its
  // file has changed since it was opened.
  at::Tensor get(const std::string& name, const std::vector<int64_t>& shape);
  // As get(), but in the memory of each rank's device, for tensors that all ranks compute with.
  at::Tensor on_each(const std::string& name, const std::vector<int64_t>& shape);
  // As get(), but a view of the mapped file if that has the dtype: valid until unmap(), and only
  // while the file does not change.
  at::Tensor view(const std::string& name, const std::vector<int64_t>& shape);
  bool has(const std::string& name) const { return find(name) != nullptr; }
  // True if the checkpoint has this linear's weights, quantised or not.
  bool has_linear(const std::string& name) const;
  // The linear [out, in] with this canonical name (without ".weight"), in the fastest form for
  // serving; with set_plain(), as plain tensors. Owns its memory, as get() does. Models load all
  // linears through this function, however the checkpoint stores them, except patch embeddings,
  // which are stored as convolutions and loaded by get(). When serving on CPUs, stored integers and
  // those of set_rounding() stay integers. Other quantised weights are decoded exactly as the
  // checkpoint specifies and rounded once to the target dtype. With a partition, returns this
  // rank's part; a linear split by inputs has its bias on rank 0. Throws as get(), and for values
  // that cannot become integers.
  ops::Weight linear(const std::string& name, int64_t out, int64_t in, bool bias,
                     LinearPart part = LinearPart::kOther,
                     const adapters::Partition& partition = {});
  // Writes the stored values of linear() back into `weight`, which is this slice of it. Throws as
  // get(). Thread-safe.
  void refill(const std::string& name, ops::Weight& weight, const LinearSlice& slice);

  // The sizes of a mixture's experts.
  struct ExpertSizes {
    int64_t count = 0, hidden = 0, width = 0;
  };
  // If the checkpoint stores a mixture's experts in one tensor each of gates and ups, and of downs
  // (prefix + "gate_up_proj" and "down_proj", of either orientation), makes each of their linears
  // known by its own name, e.g. prefix + "3.gate_proj". Throws LoadError for other shapes, and
  // where the orientation cannot be told from the shape.
  void split_experts(const std::string& prefix, const ExpertSizes& sizes);

  // The shape of an existing tensor, by its canonical name.
  std::vector<int64_t> shape_of(const std::string& name) const { return find(name)->shape(); }
  // `count` values of an existing tensor from index `first` on, [count], in the stored dtype; of a
  // GGUF file's blocks in float. Thread-safe. kUnprocessable if they cannot be read, are not
  // floats, or the file has changed since it was opened.
  Result<at::Tensor> stored_values(const std::string& name, size_t first, size_t count) const;

  // Reads some rows of a linear: [count, in] in float.
  using ReadRows = std::function<Result<at::Tensor>(int64_t first, int64_t count)>;
  // Reads rows of an existing linear [out, in], with the values that linear() gives on one rank: if
  // quantised, decoded or rounded again. Thread-safe. Errors as stored_values().
  Result<ReadRows> served_rows(const std::string& name, int64_t out, int64_t in, LinearPart part);

  // Marks the tensors with this prefix as used although the model never reads them.
  void leave_out(const std::string& prefix);

  // Unmaps the files. Later requests read from the files as opened, even if they were renamed.
  // kUnprocessable if one has changed since.
  Status unmap();

  // The dtype of most bytes among the checkpoint's floats of 16 bits and more.
  at::ScalarType stored_dtype() const;
  // A quantised linear counts its weights, not its scales.
  int64_t parameters() const;
  size_t bytes() const;
  // The linears that linear() has returned so far; absent if the checkpoint is not quantised.
  std::optional<QuantisedReport> quantised() const;
  // The size of everything get() and linear() have returned so far. On the meta device, the
  // size they would have on CPUs.
  const HeldBytes& held() const { return held_; }
  // True if linear() has returned integers, into which nothing can be merged.
  bool keeps_integers() const { return keeps_integers_; }
  // True if the checkpoint rounds the inputs of a linear that linear() has returned.
  bool rounds_inputs() const { return rounds_inputs_; }
  // Digest of the name, dtype, shape and a sample of the values of every tensor. Distinguishes
  // checkpoints without reading gigabytes. Must not be called after unmap().
  Digest sketch() const;
  // Names, as stored, of the tensors the model never asked for.
  std::vector<std::string> unused() const;

 private:
  class Parts;
  struct File {
    InputFile input;
    std::shared_ptr<const void> mapped;  // keeps the mapping alive; null after unmap()
  };
  // A GGUF tensor whose stored form differs from transformers'.
  struct GgufForm {
    GgufType type;
    std::vector<int64_t> shape;  // shape of the decoded values
    int64_t head_rows = 0;       // GgufSource
    bool one_more = false;
  };
  // A linear [out, in] stored as columns [first, first + out) of [in, columns].
  struct ColumnForm {
    std::vector<int64_t> shape;
    int64_t first = 0;
  };
  struct Entry {
    TensorView view;  // without bytes after unmap(); for blocks: U8 [rows, bytes of a row]
    std::string stored_name;
    size_t file = 0;   // index into files_
    size_t begin = 0;  // offset of its bytes in the file
    std::shared_ptr<const GgufForm> gguf = {};
    std::optional<ColumnForm> columns = {};
    // The tensors of a file that are joined into this one; view has no bytes then.
    std::vector<Entry> pieces = {};
    GgufJoin join = GgufJoin::kRows;

    const std::vector<int64_t>& shape() const {
      return columns ? columns->shape : gguf ? gguf->shape : view.shape;
    }
    bool has_blocks() const;
  };
  const Entry* find(const std::string& canonical) const;
  // A float tensor, as stored. Throws as get().
  at::Tensor floats(const std::string& name, const std::vector<int64_t>& shape);
  // The result of get(), in memory that nothing else shares.
  at::Tensor own_tensor(const std::string& name, const std::vector<int64_t>& shape);
  // The values of an unquantised linear, in the target dtype; a view of the mapped file where
  // view() would return one. Throws as get().
  at::Tensor stored_part(const std::string& name, const LinearSlice& slice, at::Device device);
  Status open_file(const std::string& path);
  // A file that was merely renamed or removed counts as unchanged, because it is still open.
  static Status check_unchanged(const InputFile& file);
  Status open_gguf(const GgufModel& model);
  Status add_gguf(const std::shared_ptr<const Gguf>& file, const std::vector<GgufSource>& sources);
  static Entry joined_entry(const GgufSource& source, size_t first);
  at::Tensor stored_pieces(const Entry& entry) const;
  // stored_values() of an entry, and of an entry with pieces.
  Result<at::Tensor> values_of(const Entry& entry, size_t first, size_t count) const;
  Result<at::Tensor> piece_values(const Entry& entry, size_t first, size_t count) const;
  // Converts whole rows of a tensor with a GgufForm to transformers' layout; if heads are
  // interleaved, whole heads. Blocks are decoded to `dtype`.
  static at::Tensor restored(const Entry& entry, const at::Tensor& rows, at::ScalarType dtype);
  Result<at::Tensor> restored_values(const Entry& entry, size_t first, size_t count) const;
  // The values of a linear stored as columns.
  at::Tensor columns_of(const Entry& entry) const;
  Result<at::Tensor> column_values(const Entry& entry, size_t first, size_t count) const;
  // One linear of each expert in `whole`: its part from row or column `first` on, [out, in].
  void split_expert_tensor(const Entry& whole, const std::string& prefix, const char* name,
                           int64_t first, int64_t out, int64_t in, bool transposed);
  StoredLinear block_linear(const Entry& entry, int64_t out, int64_t in);
  // Throws LoadError unless the configuration requires the tensor's shape.
  void check_shape(const Entry& entry, const std::vector<int64_t>& required) const;
  bool is_quantised() const { return quantisation_ != nullptr || has_blocks_; }
  at::Tensor stored(const Entry& entry) const;
  const std::string& path_of(const Entry& entry) const { return files_[entry.file].input.path(); }

  // All names of a linear or a prefix, the canonical one first.
  std::vector<std::string> names_of(const std::string& name) const;
  // The names of a linear by the one that the file has.
  std::vector<std::string> names_in_file(const std::string& stored) const;
  // Null if the checkpoint stores this linear in floats or not at all. Throws LoadError.
  std::unique_ptr<StoredLinear> quantised_linear(const std::string& name, int64_t out, int64_t in);
  // This rank's part of quantised_linear().
  std::unique_ptr<StoredLinear> quantised_slice(const std::string& name, const LinearSlice& slice);
  // linear(), without the rounding of its inputs.
  ops::Weight weight_of(const std::string& name, const StoredLinear* quantised,
                        const LinearSlice& slice, bool bias, LinearPart part);
  // Throws LoadError if the rounding cannot be done exactly.
  void round_inputs(const std::string& name, const StoredLinear& quantised, LinearPart part,
                    ops::Weight& weight);
  // True if this linear is served in its stored integers; on the meta device, if it would be on
  // CPUs.
  bool serves_integers(const StoredLinear& linear, int64_t in) const;
  // The format to which set_rounding() quantises such linears.
  std::optional<ops::Quantisation> quantisation(LinearPart part) const;
  // The linear in integers; nullopt if it is served in floats. `stored` is the slice and may be
  // null.
  // The integers of set_rounding(). Throws LoadError for values that cannot become integers.
  ops::QuantisedTensor rounded(const std::string& name, const LinearSlice& slice,
                               const ops::Quantisation& to);
  std::optional<ops::Weight> integer_linear(const std::string& name, const StoredLinear* stored,
                                            const LinearSlice& slice, const at::Tensor& bias,
                                            LinearPart part);
  // The values of the slice, in the target dtype.
  at::Tensor decoded(const StoredLinear& linear, const LinearSlice& slice, at::Device device) const;
  // Counts an all-zero bias as used: older GPTQ folders store one for linears without a bias.
  void skip_zero_bias(const std::string& name);
  // Explains a missing tensor that is stored quantised; empty if it is not.
  std::string quantised_hint(const std::string& name) const;
  // The number of parameters in one stored tensor.
  int64_t parameters_in(const Entry& entry) const;

  std::string dir_;
  std::vector<File> files_;
  std::map<std::string, Entry> entries_;  // by stored name
  // Parts of entries that are linears of their own, by the name that they would be stored under.
  std::map<std::string, Entry> parts_;
  std::set<std::string> used_;
  std::vector<adapters::PrefixAlias> aliases_;
  at::ScalarType dtype_ = at::kFloat;
  at::Device device_ = at::kCPU;
  bool plain_ = false, keeps_integers_ = false;
  bool rounds_inputs_ = false;
  bool has_blocks_ = false;  // some tensor of a GGUF file is stored in blocks
  Shard shard_;
  // Unsplit results of get() and linear(), by name, on the device of rank 0. Empty with one rank,
  // and after unmap().
  std::map<std::string, at::Tensor> shared_tensors_;
  std::map<std::string, ops::Weight> shared_linears_;
  std::mutex refilling_;
  Rounding rounding_;
  HeldBytes held_;
  std::shared_ptr<const QuantisedConfig> quantisation_;
  std::map<std::string, int64_t> packed_;  // parameters by the stored name of their words
  QuantisedReport quantised_;
};

// The ATen dtype of weights stored in a safetensors dtype; nullopt for integers and 8-bit floats.
std::optional<at::ScalarType> scalar_type(DType dtype);
at::ScalarType stored_type(DType dtype);  // accepts any dtype
// A tensor over the view's bytes; copied only if they are misaligned for the dtype.
at::Tensor tensor_of(const TensorView& view);

}  // namespace valora::models
