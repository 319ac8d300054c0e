// The weights of adapters and heads, as the room `serving` holds them without knowing what they
// are.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <utility>

#include "adapters/adapter_spec.h"
#include "ops/lora.h"
#include "ops/vocabulary.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

struct AdapterTensors final : serving::Tensors {
  explicit AdapterTensors(std::shared_ptr<const ops::AdapterWeights> weights_,
                          ops::VocabularyWeights vocabulary_ = {})
      : weights(std::move(weights_)), vocabulary(std::move(vocabulary_)) {}
  // In the pool, shared by adapters of equal content (AdapterStore::Stored).
  std::shared_ptr<const ops::AdapterWeights> weights;
  ops::VocabularyWeights vocabulary;
};

struct HeadTensors final : serving::Tensors {
  HeadTensors(at::Tensor weight_, at::Tensor bias_)
      : weight(std::move(weight_)), bias(std::move(bias_)) {}
  at::Tensor weight;  // float [labels, hidden]
  at::Tensor bias;    // float [labels]; undefined if there is none
};

// What the adapter makes of outputs, beside its low-rank products.
inline void set_outputs(const adapters::AdapterSpec& spec, ops::AdapterWeights& weights) {
  std::map<int, ops::OutputChange> changes;
  for (const adapters::OutputValues& shift : spec.shifts)
    changes[shift.module].shift = at::tensor(shift.values, at::kFloat);
  for (const adapters::OutputValues& gain : spec.gains)
    changes[gain.module].gain = at::tensor(gain.values, at::kFloat);
  for (auto& [module, change] : changes) weights.set_output(module, std::move(change));
}

inline const ops::AdapterWeights& weights_of(const serving::LoadedAdapter& adapter) {
  return *static_cast<const AdapterTensors&>(*adapter.tensors).weights;
}
inline const ops::VocabularyWeights& vocabulary_of(const serving::LoadedAdapter& adapter) {
  return static_cast<const AdapterTensors&>(*adapter.tensors).vocabulary;
}
inline const HeadTensors& tensors_of(const serving::LoadedHead& head) {
  return static_cast<const HeadTensors&>(*head.tensors);
}

}  // namespace valora
