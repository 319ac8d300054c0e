// Visual embeddings of examples: cached if the vision tower is frozen, computed with the adapter if
// it is trained.
#pragma once

#include <span>
#include <vector>

#include "engine/memory/tensor_cache.h"
#include "generator/train/example.h"
#include "models/model.h"
#include "serving/prompts/frontend.h"

namespace valora::generator {

class VisualSource {
 public:
  // cache_bytes: size of the embedding cache. Evicted embeddings are recomputed from the files.
  VisualSource(const models::Model& model, const serving::Frontend& frontend, size_t cache_bytes)
      : model_(model), frontend_(frontend), cache_(cache_bytes) {}

  // The examples' embeddings, concatenated for one batch, ascending by token. adapter: set if it
  // affects the tower or the projector, in which case gradients are recorded; otherwise null.
  // Errors name the example.
  Result<std::vector<models::VisualRows>> rows(std::span<const Example* const> examples,
                                               const ops::AdapterWeights* adapter);

 private:
  struct Wanted {
    const Example* example;
    const Example::Visual* visual;
    int64_t token;  // the first token of the visual in the example
    at::Tensor embeddings;
  };
  Status encode(std::vector<Wanted*>& wanted, const ops::AdapterWeights* adapter);

  const models::Model& model_;
  const serving::Frontend& frontend_;
  TensorCache cache_;
};

}  // namespace valora::generator
