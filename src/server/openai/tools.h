// Parses the function calling fields: "tools", "tool_choice", "parallel_tool_calls".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::server {

// The schema of a function without "parameters".
inline constexpr char kNoParameters[] =
    R"({"type":"object","properties":{},"additionalProperties":false})";

struct Tool {
  std::string name;
  std::string parameters;  // a JSON schema of the arguments; empty: any object
  bool strict = false;
};

enum class ToolChoice : uint8_t {
  kNone,      // the model answers in text
  kAuto,      // the model decides
  kRequired,  // the model calls at least one of ToolRequest::callable
};

struct ToolRequest {
  ToolChoice choice = ToolChoice::kNone;
  std::vector<Tool> callable;
  bool parallel = true;  // allow several calls per answer; false if tool_choice names a function
  std::string json;      // all tools as sent, for the chat template; empty: none
};

// body: parsed from `text`, which is read again for key order. The choice is kNone if there are no
// tools.
Result<ToolRequest> parse_tools(const Json& body, std::string_view text);

}  // namespace valora::server
