// Parses the sampling fields of chat and completion bodies.
#pragma once

#include "api/request.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora::server {

// Reads all fields but max_tokens and logprobs, whose names differ between the two endpoints.
Result<SamplingParams> parse_sampling(const Json& body);

}  // namespace valora::server
