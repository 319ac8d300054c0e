// What a chat template expects and asks for, found in its source.
#pragma once

#include <string_view>

#include "base/tool_call_style.h"
#include "jinja/syntax/ast.h"

namespace valora::text {

// The type of message content that the template expects, derived from its syntax tree.
struct ContentUse {
  // It loops over the content, reads fields of its items, or tests whether it is a sequence.
  bool as_list = false;
  bool as_string = false;  // it tests whether the content is a string
};
ContentUse find_content_use(const jinja::Template& source);

// Detects whether a chat template writes tools, and which call format it asks the model to use.
struct ToolUse {
  bool taken = false;  // it reads the variable "tools"
  ToolCallStyle style = ToolCallStyle::kHermes;
};
ToolUse find_tool_use(std::string_view source);

}  // namespace valora::text
