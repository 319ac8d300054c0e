// The tensors of an adapter file, grouped by module.
#pragma once

#include <map>
#include <set>
#include <string>

#include "adapters/lora_config.h"
#include "adapters/module_table.h"
#include "adapters/tensor_names.h"
#include "base/result.h"
#include "base/safetensors.h"

namespace valora::adapters {

struct BaseCopies;

struct LoraHalves {
  std::string name;  // of the module, as in the file
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
  const TensorView* bias = nullptr;       // of B; null if there is none
  const TensorView* magnitude = nullptr;  // of DoRA; null if there is none
  std::string a_tensor, b_tensor;         // the names of a and b in the file
};

struct HeadTensors {
  const TensorView* weight = nullptr;
  const TensorView* bias = nullptr;  // null if there is none
};

// The rows of trainable_token_indices.
struct TokenRows {
  std::string tensor;
  const TensorView* rows = nullptr;
};

struct AdapterContents {
  std::map<int, LoraHalves> modules;         // by index into the ModuleTable; both halves present
  std::map<std::string, HeadTensors> heads;  // weight present
  // Copies of the base model's tensors (adapters/base_copies.h), by the tensor's name; not checked.
  std::map<std::string, TensorName> base_copies;
  std::map<int, TokenRows> token_rows;  // by index into the ModuleTable
  std::set<int> unread;                 // modules without effect whose tensors were passed over
  std::set<std::string> originals;      // tensors that do not count (TensorRole::kOriginal)
};

// Assigns every tensor of the file to a module or head, or to the base model. Error: kUnprocessable
// naming the tensor or module, for a tensor that cannot be served, a module that is unknown or not
// servable, a missing or repeated half, a dtype other than F32, F16 and BF16, or a value that is
// not finite. base may be null.
Result<AdapterContents> sort_tensors(const SafeTensors& file, const LoraConfig& config,
                                     const ModuleTable& modules, const BaseCopies& copies);

}  // namespace valora::adapters
