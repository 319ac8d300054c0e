// The weights of adapters and heads, as the room `serving` holds them without knowing what they
// are.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <utility>

#include "ops/lora.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

struct AdapterTensors final : serving::Tensors {
  explicit AdapterTensors(std::shared_ptr<const ops::AdapterWeights> weights_)
      : weights(std::move(weights_)) {}
  // In the pool, shared by adapters of equal content (AdapterStore::Stored).
  std::shared_ptr<const ops::AdapterWeights> weights;
};

struct HeadTensors final : serving::Tensors {
  HeadTensors(at::Tensor weight_, at::Tensor bias_)
      : weight(std::move(weight_)), bias(std::move(bias_)) {}
  at::Tensor weight;  // float [labels, hidden]
  at::Tensor bias;    // float [labels]; undefined if there is none
};

inline const ops::AdapterWeights& weights_of(const serving::LoadedAdapter& adapter) {
  return *static_cast<const AdapterTensors&>(*adapter.tensors).weights;
}
inline const HeadTensors& tensors_of(const serving::LoadedHead& head) {
  return static_cast<const HeadTensors&>(*head.tensors);
}

}  // namespace valora
