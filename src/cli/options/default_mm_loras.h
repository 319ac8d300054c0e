// --default-mm-loras: the adapters of chats that name none and hold media, in vLLM's form.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace valora::cli {

struct DefaultMmLora {
  std::string modality;  // "image" or "video"
  std::string name;      // of the adapter
  std::string folder;    // to load under the name; empty: it is loaded anyway
};

// Reads {"image": …, "video": …}, or nothing. A value is one of the `known` names of adapters, else
// a folder that is served under the name of its modality. kInvalidArgument for anything else.
Result<std::vector<DefaultMmLora>> read_default_mm_loras(const std::string& text,
                                                         const std::vector<std::string>& known);

}  // namespace valora::cli
