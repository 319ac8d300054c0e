// InternVL in folders that bring their own code (InternVLChatModel): the model of internvl.h under
// older names, with the settings of pictures in config.json.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family internvl_chat_family();

}  // namespace valora::models
