// The tensors of an adapter file, grouped by module.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "adapters/folder/lora_config.h"
#include "adapters/targets/module_table.h"
#include "adapters/tensors/tensor_names.h"
#include "base/result.h"
#include "base/tensors/safetensors.h"

namespace valora::adapters {

struct BaseCopies;

struct LoraHalves {
  std::string name;  // the module's name, as in the file
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
  const TensorView* bias = nullptr;       // lora_B's; null if absent
  const TensorView* magnitude = nullptr;  // DoRA's; null if absent
  std::string a_tensor, b_tensor;         // names of a and b in the file
  // Made of tensors of all experts (adapters/tensors/stored_experts.h): what holds the values of a
  // and b.
  bool stored_together = false;
  std::shared_ptr<const std::vector<uint8_t>> owner = {};
};

struct HeadTensors {
  const TensorView* weight = nullptr;
  const TensorView* bias = nullptr;  // null if absent
};

// The trained rows of trainable_token_indices.
struct TokenRows {
  std::string tensor;
  const TensorView* rows = nullptr;
};

struct AdapterContents {
  std::map<int, LoraHalves> modules;         // by index into the ModuleTable; both halves present
  std::map<std::string, HeadTensors> heads;  // weight present
  // Copies of the base model's tensors (adapters/tensors/base_copies.h), by tensor name; not
  // checked yet.
  std::map<std::string, TensorName> base_copies;
  std::map<int, TokenRows> token_rows;  // by index into the ModuleTable
  std::set<int> unread;                 // kUnread modules, whose tensors were skipped
  std::set<std::string> originals;      // ignored tensors (TensorRole::kOriginal)
  std::list<TensorView> made;           // the halves that are not views of the file
};

// Assigns every tensor of the file to a module, a head or the base model. kUnprocessable, naming
// the tensor or module, for a tensor that cannot be served, an unknown or unservable module, a
// missing or repeated half, a dtype other than F32, F16 and BF16, or a non-finite value.
Result<AdapterContents> sort_tensors(const SafeTensors& file, const LoraConfig& config,
                                     const ModuleTable& modules, const BaseCopies& copies);

}  // namespace valora::adapters
