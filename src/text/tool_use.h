// Detects if a chat template writes tools, and how its text asks the model to call them.
#pragma once

#include <string_view>

#include "base/tool_call_style.h"

namespace valora::text {

struct ToolUse {
  bool taken = false;  // reads the variable "tools"
  ToolCallStyle style = ToolCallStyle::kHermes;
};
ToolUse find_tool_use(std::string_view source);

}  // namespace valora::text
