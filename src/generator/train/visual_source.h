// The visual embeddings of examples: cached if the vision tower is frozen, computed with the
// adapter if it is trained.
#pragma once

#include <span>
#include <vector>

#include "engine/tensor_cache.h"
#include "generator/train/example.h"
#include "models/model.h"
#include "serving/prompts/frontend.h"

namespace valora::generator {

class VisualSource {
 public:
  // cache_bytes: size of the embedding cache. Evicted embeddings are read and encoded again.
  VisualSource(const models::Model& model, const serving::Frontend& frontend, size_t cache_bytes)
      : model_(model), frontend_(frontend), cache_(cache_bytes) {}

  // The embeddings of the examples, concatenated in one batch, ascending by token. adapter: set if
  // it touches the tower or the projector, which records gradients; otherwise null. Errors name the
  // example.
  Result<std::vector<models::VisualRows>> rows(std::span<const Example* const> examples,
                                               const ops::AdapterWeights* adapter);

 private:
  struct Wanted {
    const Example* example;
    const Example::Visual* visual;
    int64_t token;  // the example's first
    at::Tensor embeddings;
  };
  Status encode(std::vector<Wanted*>& wanted, const ops::AdapterWeights* adapter);

  const models::Model& model_;
  const serving::Frontend& frontend_;
  TensorCache cache_;
};

}  // namespace valora::generator
