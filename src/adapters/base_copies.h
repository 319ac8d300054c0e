// Copies of the base model's tensors in an adapter's file: PEFT saves embeddings and output layers
// with an adapter (save_embedding_layers) even if they were not trained.
#pragma once

#include "adapters/adapter_contents.h"
#include "adapters/base_weights.h"

namespace valora::adapters {

// What to do with tensors of the base model.
struct BaseCopies {
  bool pass_over = false;             // they were compared before
  const BaseWeights* base = nullptr;  // to compare with; null otherwise: refuse them

  // True if a tensor of an adapter's file is a copy of a base model's tensor: neither a LoRA weight
  // nor a task head.
  bool are(const std::string& tensor, const ModuleTable& modules) const;
  // Refuses copies of other shapes or values than the base model's. Values are read from the file
  // again, piece by piece. Error: kUnprocessable naming the module, or that of equal().
  Status check(const SafeTensors& file, const AdapterContents& contents) const;
};

}  // namespace valora::adapters
