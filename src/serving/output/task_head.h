// Vision task heads: a label from one forward pass instead of a generated answer (VaLoRA §4.2.2).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/request.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora::serving {

// logits, probs: one per label of the head.
Classification classification_of(const LoadedHead& head, std::vector<float> logits,
                                 std::vector<float> probs);

// The head that answers a request: the one it names, else the default of its first adapter's name,
// else the only one. Null: the language model, which kGenerate selects with "lm" and also gets if
// there are several heads. kInvalidArgument if the head does not exist or the choice is ambiguous;
// the message lists the heads.
Result<const LoadedHead*> choose_head(const GenerateRequest& request,
                                      std::span<const AppliedAdapter> adapters);

// As JSON: {"label": "car"}, or {"labels": […]} for a multi-label head. Not for regressions.
std::string label_answer(const LoadedHead& head, const Classification& result,
                         bool confidence = false);
// The answer as text, for chat completions: the label, several labels joined by ", ", or a
// regression's values.
std::string label_text(const LoadedHead& head, const Classification& result);

}  // namespace valora::serving
