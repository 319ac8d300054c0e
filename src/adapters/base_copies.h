// Tensors of the base model in an adapter's file: PEFT saves embeddings and output layers with an
// adapter (save_embedding_layers) even if they were not trained, and those that were
// (modules_to_save, bias).
#pragma once

#include <string>
#include <vector>

#include "adapters/adapter_contents.h"
#include "adapters/base_weights.h"

namespace valora::adapters {

// A tensor of the file that is not the base model's.
struct ChangedCopy {
  std::string tensor;  // its name in the file
  int module = 0;      // index into the ModuleTable
  bool is_bias = false;
  Digest values;            // of a weight: of its dtype, shape and values
  bool below_rows = false;  // TensorName::below_rows
};

// What to do with tensors of the base model.
struct BaseCopies {
  bool pass_over = false;             // they were compared before
  const BaseWeights* base = nullptr;  // to compare with; null otherwise

  // True if a tensor of an adapter's file is a copy of a base model's tensor: neither a LoRA weight
  // nor a task head.
  bool are(const std::string& tensor, const ModuleTable& modules) const;
  // The copies that differ from the base model's tensors and can be served: weights of the
  // embedding and of the output layer, of any number of tokens, and biases of linears if the
  // configuration has trained ones. Without a base, the weights count as changed. Values are read
  // from the file again, piece by piece. Error: kUnprocessable naming the module for another
  // difference or values that are not finite, or that of equal().
  Result<std::vector<ChangedCopy>> changed(const SafeTensors& file, const AdapterContents& contents,
                                           const ModuleTable& modules,
                                           const LoraConfig& config) const;
};

}  // namespace valora::adapters
