// The parsers of all styles, for make_call_parser().
#pragma once

#include <memory>
#include <string_view>

#include "server/tools/call_parser.h"

namespace valora::server {

inline constexpr std::string_view kSpace = " \t\r\n";

std::unique_ptr<CallParser> make_hermes_parser(const ToolRequest& tools);
std::unique_ptr<CallParser> make_llama3_json_parser(const ToolRequest& tools);
std::unique_ptr<CallParser> make_pythonic_parser(const ToolRequest& tools);

}  // namespace valora::server
