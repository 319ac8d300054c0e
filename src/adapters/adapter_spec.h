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
  std::vector<LoraTarget> targets;  // by module, ascending
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
