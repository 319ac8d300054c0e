// --default-mm-loras, in vLLM's form: the adapters of chats that contain media but name no adapter.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace valora::cli {

struct DefaultMmLora {
  std::string modality;  // "image" or "video"
  std::string name;      // of the adapter
  std::string folder;    // to load under `name`; empty: already being loaded
};

// Reads {"image": …, "video": …}, or empty text. A value is one of the `known` adapter names, else
// a folder that is served under the name of its modality. kInvalidArgument for anything else.
Result<std::vector<DefaultMmLora>> read_default_mm_loras(const std::string& text,
                                                         const std::vector<std::string>& known);

}  // namespace valora::cli
