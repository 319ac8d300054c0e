// Options of `vllm serve` whose value is a JSON object.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json_spacing.h"
#include "base/result.h"

namespace valora::cli {

// --default-mm-loras: the adapters of chats that contain media but name no adapter.
struct DefaultMmLora {
  std::string modality;  // "image" or "video"
  std::string name;      // of the adapter
  std::string folder;    // to load under `name`; empty: already being loaded
};

// Reads {"image": …, "video": …}, or empty text. A value is one of the `known` adapter names, else
// a folder that is served under the name of its modality. kInvalidArgument for anything else.
Result<std::vector<DefaultMmLora>> read_default_mm_loras(const std::string& text,
                                                         const std::vector<std::string>& known);

// --structured-outputs-config, the options of structured output: the white space that the object
// asks for in JSON, if any. Settings that would change answers and are not supported are
// kInvalidArgument, with their key; settings that change none are accepted.
Result<std::optional<JsonSpacing>> read_structured_outputs(const std::string& text);

}  // namespace valora::cli
