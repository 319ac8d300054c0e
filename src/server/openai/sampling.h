// The sampling fields of chat and completion bodies.
#pragma once

#include "api/request.h"
#include "base/json.h"
#include "base/result.h"

namespace valora::server {

// All but max_tokens and logprobs, which the two endpoints spell differently.
Result<SamplingParams> parse_sampling(const Json& body);

// 400 or 501 naming the field, for what changes the answer and can't be honoured; unset or neutral
// values pass.
Status check_supported(const Json& body);

}  // namespace valora::server
