// Vision task heads: a label in one round instead of a decoded answer (VaLoRA §4.2.2).
#pragma once

#include <ATen/ATen.h>

#include "api/answer.h"
#include "api/request.h"
#include "engine/loaded_adapter.h"

namespace valora {

// hidden: [width], the last prompt token's state after the final norm. kInternal where the logits
// are not numbers.
Result<std::vector<float>> label_logits(const LoadedHead& head, const at::Tensor& hidden);
// One logit per label of the head.
Classification classification_of(const LoadedHead& head, std::vector<float> logits);

// The head that a request asks for, or that its first adapter's name stands for; null: the language
// model. kInvalidArgument names the adapter's heads when it cannot be told.
Result<const LoadedHead*> choose_head(const GenerateRequest& request,
                                      std::span<const AppliedAdapter> adapters);

// The answer as text, for chat completions: the label, or several joined by ", ", or the value.
std::string label_text(const LoadedHead& head, const Classification& result);

}  // namespace valora
