// A PEFT LoRA folder, read and validated: it can be served exactly, or it is refused with the
// reason.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/targets/module_table.h"
#include "base/digest.h"
#include "base/files/input_folder.h"
#include "base/labels.h"
#include "base/result.h"
#include "base/tensors/safetensors.h"

namespace valora::adapters {

// One adapted linear: y += scale * (x Aᵀ) Bᵀ.
struct LoraTarget {
  int module = 0;  // index into the ModuleTable
  int rank = 0;
  float scale = 1;  // alpha / rank, or alpha / sqrt(rank) with rslora, patterns applied
  TensorView a;     // [rank, in]
  TensorView b;     // [out, rank]
  // Owns the data of a or b if it had to be converted (use_bdlora, target_parameters).
  std::shared_ptr<const std::vector<uint8_t>> dense;
};

// Matrices of an adapter stored separately in the pool, where adapters with the same bytes share
// them.
enum class PartKind : uint8_t {
  kEmbeddingLora,  // Aᵀ above B, [vocabulary + hidden, rank]
  kTokenRows,      // replace rows of the embedding or output layer, [tokens, hidden]
  kEmbedding,      // replaces the base model's, [vocabulary, hidden]
  kHead,           // the output layer; replaces the base model's, [vocabulary, hidden]
  kHeadLora        // Aᵀ above B, [hidden + vocabulary, rank]; added to a kHead of equal vocabulary
};
const char* part_kind_name(PartKind kind);

struct AdapterPart {
  PartKind kind = PartKind::kHead;
  std::vector<std::string> tensors;  // names in the file: one, or A and B
  DType dtype = DType::kF32;         // dtype of the tensors
  int64_t rows = 0, columns = 0;     // size of the matrix
  Digest digest;                     // covers the kind and values
  size_t bytes() const { return static_cast<size_t>(rows * columns) * dtype_size(dtype); }
};

// An adapter's changes to the embedding and the output layer, except low-rank products on the
// latter. Indices refer to AdapterSpec::parts; -1: none.
struct VocabularyChange {
  int embedding = -1, embedding_lora = -1, embedding_rows = -1;
  int head = -1, head_rows = -1, head_lora = -1;
  // The adapter's vocabulary size; 0: the base model's.
  int64_t tokens = 0;
  float scale = 1, head_scale = 1;  // of embedding_lora and head_lora
  // DoRA: factors of an embedding's elements, low-rank product included: [hidden]; empty: none.
  std::vector<float> embedding_gain;
  std::vector<int64_t> embedding_ids, head_ids;  // token ids of the rows, in row order
};

// One value per output of a linear: [out].
struct OutputValues {
  int module = 0;
  std::vector<float> values;
};

enum class ProblemType { kSingleLabel, kMultiLabel, kRegression };

// A linear head over the last prompt token's final hidden state (modules_to_save).
struct TaskHead {
  std::string name;                // "score"
  TensorView weight;               // [labels, hidden]
  std::optional<TensorView> bias;  // [labels]
  Labels labels;                   // one per row; "LABEL_i" if no file names them
  ProblemType problem_type = ProblemType::kSingleLabel;
  bool add_generation_prompt = false;  // as used in training
};

struct AdapterSpec {
  std::string path, root;  // FolderPath
  Digest digest;           // covers the tensors' content, the configuration and the sidecar
  // As `digest`, but with the file's identity in place of the targets' values.
  Digest headers_digest;
  // `digest` and `headers_digest` without parts, shifts and gains, as from read_adapter_again().
  Digest panels_digest, panels_headers_digest;
  std::vector<LoraTarget> targets;  // by module, ascending
  std::vector<int32_t> invocation;  // LoraConfig::invocation
  std::vector<AdapterPart> parts;
  VocabularyChange vocabulary;
  std::vector<OutputValues> shifts;  // added to outputs, already scaled; by module, ascending
  // DoRA: factors of the outputs, low-rank product included, before the bias is added.
  std::vector<OutputValues> gains;  // by module, ascending
  // The adapter holds values that replace the base model's. They cannot be scaled or summed with
  // another adapter's.
  bool replaces = false;
  std::vector<TaskHead> heads;
  int max_rank = 0;
  size_t bytes = 0;                         // total size of the tensors in the file
  std::string task, description, question;  // from the sidecar valora.json; may be empty
  std::vector<std::string> warnings;        // unknown keys, values that training never leaves, …
  std::shared_ptr<const SafeTensors> file;  // keeps the tensor views valid
};

struct AdapterLimits {
  int max_rank = 256;
  size_t max_file_bytes = size_t{4} << 30;  // the tensor file is read into memory
};

// Reads adapter_config.json, adapter_model.safetensors and the optional sidecar valora.json ({task,
// description, question, heads:[{name, labels, problem_type, pooling, add_generation_prompt}]}).
// Errors: kNotFound (no such folder or file), kUnprocessable (cannot be served exactly, a
// non-finite value, or a broken tensor file; the message names the module, tensor or option),
// kInvalidArgument (broken JSON, wrong types), kConflict (a file was changed during the call:
// nothing is ever read in part from one version and in part from another). All files are read from
// the folder that `where` named when it was opened. Do not call it on the engine's thread.
Result<AdapterSpec> read_adapter(const FolderPath& where, const ModuleTable& modules,
                                 const AdapterLimits& limits);

// As above, without the values of `targets`: they have no bytes and are not checked, and `digest`
// equals `headers_digest`. Reads only headers, heads and the small files, so that thousands of
// adapters take about a second.
Result<AdapterSpec> read_adapter_headers(const FolderPath& where, const ModuleTable& modules,
                                         const AdapterLimits& limits);

}  // namespace valora::adapters
