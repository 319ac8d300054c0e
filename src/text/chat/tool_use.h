// Detects whether a chat template writes tools, and which call format it asks the model to use.
#pragma once

#include <string_view>

#include "base/tool_call_style.h"

namespace valora::text {

struct ToolUse {
  bool taken = false;  // it reads the variable "tools"
  ToolCallStyle style = ToolCallStyle::kHermes;
};
ToolUse find_tool_use(std::string_view source);

}  // namespace valora::text
