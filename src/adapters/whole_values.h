// What an adapter changes besides low-rank products of linears: embeddings, output layers, rows of
// tokens, and biases.
#pragma once

#include <vector>

#include "adapters/adapter_contents.h"
#include "adapters/adapter_spec.h"
#include "adapters/base_copies.h"

namespace valora::adapters {

// Fills in `spec`'s parts, vocabulary, shifts and replaces, and takes low-rank products on the
// embedding out of its targets, which must be resolved. base: null if there is none to compare
// with. Error: kUnprocessable naming the module.
Status resolve_whole_values(const SafeTensors& file, const AdapterContents& contents,
                            const LoraConfig& config, const ModuleTable& modules,
                            const std::vector<ChangedCopy>& changed, const BaseWeights* base,
                            AdapterSpec& spec);

// Takes low-rank products on the embedding out of the targets; returns them.
std::vector<LoraTarget> take_embedding_targets(std::vector<LoraTarget>& targets,
                                               const ModuleTable& modules);

}  // namespace valora::adapters
