// InternVL in folders with remote code (InternVLChatModel): the model of internvl.h under older
// names, with the picture settings in config.json.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family internvl_chat_family();

}  // namespace valora::models
