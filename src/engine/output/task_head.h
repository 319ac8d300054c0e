// Vision task heads: a label from one forward pass instead of a decoded answer (VaLoRA §4.2.2).
#pragma once

#include <ATen/ATen.h>

#include "api/answer.h"
#include "api/request.h"
#include "engine/loaded_adapter.h"

namespace valora {

// hidden: [width], the state of the last prompt token after the final norm. Returns one logit per
// label. kInternal if a logit is not finite.
Result<std::vector<float>> label_logits(const LoadedHead& head, const at::Tensor& hidden);
// hidden: as above. kInternal if a value is not finite.
Result<std::vector<float>> embedding_of(const at::Tensor& hidden);
// logits: one per label of the head.
Classification classification_of(const LoadedHead& head, std::vector<float> logits);

// The head that answers a request: the one that it names, else the default of its first adapter's
// name, else the only one. Null: the language model, which kGenerate also names "lm" and takes if
// there are several heads. kInvalidArgument if the head does not exist or
// the choice is ambiguous; the message lists the heads.
Result<const LoadedHead*> choose_head(const GenerateRequest& request,
                                      std::span<const AppliedAdapter> adapters);

// As JSON: {"label": "car"}, or {"labels": […]} of a head with several. Not of a regression.
std::string label_answer(const LoadedHead& head, const Classification& result);
// The answer as text, for chat completions: the label, several labels joined by ", ", or the values
// of a regression.
std::string label_text(const LoadedHead& head, const Classification& result);

}  // namespace valora
