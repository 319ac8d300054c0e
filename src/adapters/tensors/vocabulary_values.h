// An adapter's changes to the vocabulary: whole embeddings and output layers, low-rank products on
// the embedding, rows of tokens.
#pragma once

#include <vector>

#include "adapters/adapter_spec.h"
#include "adapters/folder/adapter_contents.h"
#include "adapters/tensors/base_copies.h"

namespace valora::adapters {

// Fills in `spec`'s parts and vocabulary; its shifts must be set already. taken: the result of
// take_vocabulary_targets(). Other arguments: as for resolve_whole_values(). Error: kUnprocessable
// naming the module.
Status resolve_vocabulary(const SafeTensors& file, const AdapterContents& contents,
                          const LoraConfig& config, const ModuleTable& modules,
                          const std::vector<ChangedCopy>& changed, const BaseWeights* base,
                          const std::vector<LoraTarget>& taken, AdapterSpec& spec);
}  // namespace valora::adapters
