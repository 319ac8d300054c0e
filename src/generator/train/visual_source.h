// The visual embeddings of examples: cached where the tower is frozen, made anew under the adapter
// where it is not.
#pragma once

#include <span>
#include <vector>

#include "engine/frontend.h"
#include "engine/visual_cache.h"
#include "generator/train/example.h"
#include "models/model.h"

namespace valora::generator {

class VisualSource {
 public:
  // cache_bytes: of embeddings kept across steps; what no longer fits is read and encoded again.
  VisualSource(const models::Model& model, const Frontend& frontend, size_t cache_bytes)
      : model_(model), frontend_(frontend), cache_(cache_bytes) {}

  // Of the examples side by side in one batch, ascending. `adapter`: where it touches tower or
  // projector, with gradients; else null. Errors name an example.
  Result<std::vector<models::VisualRows>> rows(std::span<const Example* const> examples,
                                               const ops::AdapterWeights* adapter);

 private:
  struct Wanted {
    const Example* example;
    const Example::Visual* visual;
    int64_t token;
    at::Tensor embeddings;
  };
  Status encode(std::vector<Wanted*>& wanted, const ops::AdapterWeights* adapter);

  const models::Model& model_;
  const Frontend& frontend_;
  VisualCache cache_;
};

}  // namespace valora::generator
