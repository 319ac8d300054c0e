// A PEFT LoRA folder, read and validated: either it can be served exactly, or the error says why
// not.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/module_table.h"
#include "base/digest.h"
#include "base/input_folder.h"
#include "base/result.h"
#include "base/safetensors.h"

namespace valora::adapters {

// One adapted linear: y += scale * (x Aᵀ) Bᵀ.
struct LoraTarget {
  int module = 0;  // index into the ModuleTable
  int rank = 0;
  float scale = 1;  // alpha / rank, or alpha / sqrt(rank) with rslora, patterns applied
  TensorView a;     // [rank, in]
  TensorView b;     // [out, rank]
  // What a or b points into if the file has it in another form (use_bdlora).
  std::shared_ptr<const std::vector<uint8_t>> dense;
};

// Matrices of an adapter that have a place of their own in the pool, where adapters that hold the
// same bytes share it.
enum class PartKind : uint8_t {
  kEmbeddingLora,  // Aᵀ over B, [vocabulary + hidden, rank]
  kTokenRows,      // rows instead of the embedding's or the output layer's, [tokens, hidden]
  kEmbedding,      // instead of the base model's, [vocabulary, hidden]
  kHead            // the output layer, instead of the base model's, [vocabulary, hidden]
};
const char* part_kind_name(PartKind kind);

struct AdapterPart {
  PartKind kind = PartKind::kHead;
  std::vector<std::string> tensors;  // their names in the file: one, or A and B
  DType dtype = DType::kF32;         // of the tensors
  int64_t rows = 0, columns = 0;     // of the matrix
  Digest digest;                     // of the kind and the values
  size_t bytes() const { return static_cast<size_t>(rows * columns) * dtype_size(dtype); }
};

// What an adapter changes of the embedding and the output layer besides low-rank products on the
// latter. Indices are those of AdapterSpec::parts; -1: it has none.
struct VocabularyChange {
  int embedding = -1, embedding_lora = -1, embedding_rows = -1, head = -1, head_rows = -1;
  // How many tokens it has embeddings and logits of; 0: as many as the base model.
  int64_t tokens = 0;
  float scale = 1;                               // of embedding_lora
  std::vector<int64_t> embedding_ids, head_ids;  // tokens of the rows, in their order
};

// Of each output of a linear: [out].
struct OutputValues {
  int module = 0;
  std::vector<float> values;
};

enum class ProblemType { kSingleLabel, kMultiLabel, kRegression };

// A linear head over the last prompt token's final hidden state (modules_to_save).
struct TaskHead {
  std::string name;                 // "score"
  TensorView weight;                // [labels, hidden]
  std::optional<TensorView> bias;   // [labels]
  std::vector<std::string> labels;  // one per row; "LABEL_i" if no file names them
  ProblemType problem_type = ProblemType::kSingleLabel;
  bool add_generation_prompt = false;  // as in training
};

struct AdapterSpec {
  std::string path, root;  // FolderPath
  Digest digest;           // of the tensors' content, the configuration and the sidecar
  // The same without the values of the targets, but with the identity of their file.
  Digest headers_digest;
  // The same two without parts and shifts: what read_adapter_again() gives.
  Digest panels_digest, panels_headers_digest;
  std::vector<LoraTarget> targets;  // by module, ascending
  std::vector<int32_t> invocation;  // LoraConfig::invocation
  std::vector<AdapterPart> parts;
  VocabularyChange vocabulary;
  std::vector<OutputValues> shifts;  // added to outputs; by module, ascending; scaled
  // DoRA: outputs without their bias are multiplied by these, the low-rank product included.
  std::vector<OutputValues> gains;  // by module, ascending
  // It holds values that replace the base model's, which have no scale and no sum with another
  // adapter's.
  bool replaces = false;
  std::vector<TaskHead> heads;
  int max_rank = 0;
  size_t bytes = 0;                         // of all tensors in the file
  std::string task, description, question;  // from the sidecar valora.json; may be empty
  std::vector<std::string> warnings;        // unknown configuration keys and similar
  std::shared_ptr<const SafeTensors> file;  // keeps the views alive
};

struct AdapterLimits {
  int max_rank = 256;
  size_t max_file_bytes = size_t{4} << 30;  // of the tensor file, which is read into memory
};

// Reads adapter_config.json, adapter_model.safetensors and the optional sidecar valora.json
// ({task, description, question, heads:[{name, labels, problem_type, pooling,
// add_generation_prompt}]}). Errors: kNotFound (no such folder or file), kUnprocessable (it cannot
// be served exactly, or the tensor file is broken; the message names the module, tensor or option),
// kInvalidArgument (broken JSON, wrong types). Values that are not finite are refused. Each file is
// read once, and all files come from the folder that `where` named at first, so a folder that
// changes during the call gives at worst an error. Do not call it on the engine's thread.
Result<AdapterSpec> read_adapter(const FolderPath& where, const ModuleTable& modules,
                                 const AdapterLimits& limits);

// The same without the values of `targets`: they have no bytes, `digest` is `headers_digest`, and
// their values are not checked. Reads only headers, heads and the small files, so that thousands of
// adapters take a second.
Result<AdapterSpec> read_adapter_headers(const FolderPath& where, const ModuleTable& modules,
                                         const AdapterLimits& limits);

}  // namespace valora::adapters
