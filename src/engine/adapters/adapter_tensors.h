// The weights of adapters and heads, which the room `serving` holds as opaque objects.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <utility>
#include <vector>

#include "ops/lora/lora.h"
#include "ops/vocabulary/vocabulary.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

// The adapter's weights on each rank.
using RankWeights = std::vector<ops::AdapterWeights>;

struct AdapterTensors final : serving::Tensors {
  explicit AdapterTensors(std::shared_ptr<const RankWeights> weights_,
                          ops::VocabularyWeights vocabulary_ = {})
      : weights(std::move(weights_)), vocabulary(std::move(vocabulary_)) {}
  // Panels in the pool, shared by adapters of equal content (AdapterStore::Stored).
  std::shared_ptr<const RankWeights> weights;
  // Rank 0's; all ranks read them.
  ops::VocabularyWeights vocabulary;
};

struct HeadTensors final : serving::Tensors {
  HeadTensors(at::Tensor weight_, at::Tensor bias_)
      : weight(std::move(weight_)), bias(std::move(bias_)) {}
  at::Tensor weight;  // float [labels, hidden]
  at::Tensor bias;    // float [labels]; undefined if the head has none
};

inline const ops::AdapterWeights& weights_of(const serving::LoadedAdapter& adapter, int rank) {
  return (*static_cast<const AdapterTensors&>(*adapter.tensors).weights)[rank];
}
inline const ops::VocabularyWeights& vocabulary_of(const serving::LoadedAdapter& adapter) {
  return static_cast<const AdapterTensors&>(*adapter.tensors).vocabulary;
}
inline const HeadTensors& tensors_of(const serving::LoadedHead& head) {
  return static_cast<const HeadTensors&>(*head.tensors);
}

}  // namespace valora
