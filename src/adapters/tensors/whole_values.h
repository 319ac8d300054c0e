// An adapter's changes other than low-rank products on linears: embeddings, output layers, rows of
// tokens, and biases.
#pragma once

#include <vector>

#include "adapters/adapter_spec.h"
#include "adapters/folder/adapter_contents.h"
#include "adapters/tensors/base_copies.h"

namespace valora::adapters {

// Fills in `spec`'s parts, vocabulary, shifts, gains and `replaces`. Its targets must be resolved
// already; take_vocabulary_targets() removes some of them, which become parts and gains. base: null
// if there is no base model to compare with. Error: kUnprocessable naming the module.
Status resolve_whole_values(const SafeTensors& file, const AdapterContents& contents,
                            const LoraConfig& config, const ModuleTable& modules,
                            const std::vector<ChangedCopy>& changed, const BaseWeights* base,
                            AdapterSpec& spec);

// True for a target on an output layer whose vocabulary size differs from the base model's.
bool is_of_resized_head(const LoraTarget& target, const ModuleTable& modules);
// Removes the targets of low-rank products on the embedding, or on such an output layer, and
// returns them.
std::vector<LoraTarget> take_vocabulary_targets(std::vector<LoraTarget>& targets,
                                                const ModuleTable& modules);

// An adapter's changes to the vocabulary: whole embeddings and output layers, low-rank products on
// the embedding, rows of tokens. Fills in `spec`'s parts and vocabulary; its shifts must be set
// already. taken: the result of take_vocabulary_targets(). Other arguments: as for
// resolve_whole_values(). Error: kUnprocessable naming the module.
Status resolve_vocabulary(const SafeTensors& file, const AdapterContents& contents,
                          const LoraConfig& config, const ModuleTable& modules,
                          const std::vector<ChangedCopy>& changed, const BaseWeights* base,
                          const std::vector<LoraTarget>& taken, AdapterSpec& spec);

}  // namespace valora::adapters
