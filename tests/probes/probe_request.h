// Parses the requests of engine_probe and trainer_probe.
#pragma once

#include "api/answer.h"
#include "api/request.h"
#include "base/json/json.h"

namespace valora::probe {

// {"prompt": text | "tokens": [id…] |
//  "messages": [{"role", "content": text | [text | {"image": url} | {"video": url}…]}],
//  "adapters": [{"name", "scale"}], "sampling": {…}, "task": "classify", "head",
//  "add_generation_prompt", "template_variables", "fps": frames per second of videos}
Result<GenerateRequest> read_request(const Json& json);

}  // namespace valora::probe
