// Tensors of the base model in an adapter's file. PEFT saves embeddings and output layers with an
// adapter (save_embedding_layers) even if they were not trained, as well as trained modules and
// biases (modules_to_save, bias).
#pragma once

#include <string>
#include <vector>

#include "adapters/folder/adapter_contents.h"
#include "adapters/tensors/base_weights.h"

namespace valora::adapters {

// A tensor that differs from the base model's.
struct ChangedCopy {
  std::string tensor;  // the name in the file
  int module = 0;      // index into the ModuleTable
  bool is_bias = false;
  Digest values;            // for a weight: covers dtype, shape and values
  bool below_rows = false;  // TensorName::below_rows
};

// How to treat tensors of the base model.
struct BaseCopies {
  bool pass_over = false;             // compared earlier
  const BaseWeights* base = nullptr;  // the base to compare with; may be null

  // True if a tensor of an adapter's file corresponds to one of the base model: it is neither a
  // LoRA weight nor a task head.
  bool are(const std::string& tensor, const ModuleTable& modules) const;
  // The copies that differ from the base model's tensors and can be served: weights of the
  // embedding and the output layer, with any number of tokens, and biases of linears if the
  // configuration says that they were trained. Without a base, all such weights count as changed.
  // Values are read from the file again, piece by piece. Errors: kUnprocessable, naming the module,
  // for any other difference and for non-finite values; those of BaseWeights::equal().
  Result<std::vector<ChangedCopy>> changed(const SafeTensors& file, const AdapterContents& contents,
                                           const ModuleTable& modules,
                                           const LoraConfig& config) const;
};

}  // namespace valora::adapters
