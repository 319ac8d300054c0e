// The parsers of all styles, for make_call_parser(), and what they share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json/json.h"
#include "server/tools/call_parser.h"

namespace valora::server {

inline constexpr std::string_view kSpace = " \t\r\n";

std::unique_ptr<CallParser> make_hermes_parser(const ToolRequest& tools);
std::unique_ptr<CallParser> make_llama3_json_parser(const ToolRequest& tools);
std::unique_ptr<CallParser> make_pythonic_parser(const ToolRequest& tools);

// Parses calls in Python syntax.
struct PythonCall {
  std::string name;
  OrderedJson arguments;  // an object
};

// `text` is a call with literal keyword arguments: f(a=1, b=["x", None]). Returns nullopt for
// anything else, and for nesting deeper than 64 levels.
std::optional<PythonCall> parse_python_call(std::string_view text);

}  // namespace valora::server
