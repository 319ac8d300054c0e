// LoRA on a mixture's experts that are one tensor in the reference (PEFT's target_parameters):
// makes A and B of each expert's linears from those of all experts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "adapters/folder/adapter_contents.h"
#include "adapters/targets/module_table.h"
#include "adapters/tensors/tensor_names.h"
#include "base/result.h"

namespace valora::adapters {

// The parameter that holds the module in the reference, e.g. "M.experts.gate_up_proj" of
// "M.experts.3.up_proj"; empty if the module is not an expert's linear.
std::string stored_parameter_of(const Module& module, const std::string& name);

// Collects the tensors of experts while a file is sorted.
class StoredExperts {
 public:
  explicit StoredExperts(const ModuleTable& modules) : modules_(modules) {}

  // True if the tensor is one of all experts of a mixture, and was taken. kUnprocessable for one
  // that cannot be served.
  Result<bool> take(const std::string& tensor, const TensorName& name, const TensorView& view);
  // Adds the halves of each linear to `contents`. kUnprocessable for sizes that no tensor of the
  // experts has, or that two of them could have.
  Status split(AdapterContents& contents) const;

 private:
  struct Pair {
    std::string name;  // of the experts, as in the file
    const TensorView *a = nullptr, *b = nullptr;
    std::string a_tensor, b_tensor;
  };
  Status split_pair(int first, const Pair& pair, AdapterContents& contents) const;

  const ModuleTable& modules_;
  // By the module of the first expert's gate, and the name: PEFT nests the wrappers of a module's
  // parameters.
  std::map<std::pair<int, std::string>, Pair> pairs_;
};

}  // namespace valora::adapters
