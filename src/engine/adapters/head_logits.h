// Task-head and embedding outputs from the model's last hidden state (VaLoRA §4.2.2).
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "adapters/adapter_spec.h"
#include "base/result.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

// hidden: [width], the state of the last prompt token after the final norm. Returns one logit per
// label. kInternal if a logit is not finite.
Result<std::vector<float>> label_logits(const serving::LoadedHead& head, const at::Tensor& hidden);
// hidden: see label_logits(). kInternal if a value is not finite.
Result<std::vector<float>> embedding_of(const at::Tensor& hidden);
// The probabilities of the labels; for a regression, its values.
std::vector<float> probabilities_of(const std::vector<float>& logits, adapters::ProblemType type);

}  // namespace valora
