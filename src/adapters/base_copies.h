// Copies of the base model's tensors in an adapter's file: PEFT saves embeddings and output layers
// beside an adapter (save_embedding_layers), though nobody trained them.
#pragma once

#include "adapters/adapter_contents.h"
#include "adapters/base_weights.h"

namespace valora::adapters {

// What to do with tensors of the base model.
struct BaseCopies {
  bool pass_over = false;             // they were compared before
  const BaseWeights* base = nullptr;  // to compare with; null otherwise: refuse them

  // Whether a tensor of an adapter's file stands for one of the base model: it is no LoRA weight
  // and no task head.
  bool are(const std::string& tensor, const ModuleTable& modules) const;
  // Refuses copies of other shapes or values than the base model's. Values are read from the file
  // again, piece by piece. Error: kUnprocessable naming the module, or that of equal().
  Status check(const SafeTensors& file, const AdapterContents& contents) const;
};

}  // namespace valora::adapters
