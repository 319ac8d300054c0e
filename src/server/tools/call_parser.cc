#include "server/tools/call_parser.h"

#include "server/tools/parsers.h"

namespace valora::server {

ToolCallStyle answer_style(ToolCallStyle model, const ToolRequest& tools) {
  const bool forced = tools.choice == ToolChoice::kRequired;
  return forced && model == ToolCallStyle::kPythonic ? ToolCallStyle::kLlama3Json : model;
}

std::unique_ptr<CallParser> make_call_parser(ToolCallStyle style, const ToolRequest& tools) {
  switch (style) {
    case ToolCallStyle::kLlama3Json: return make_llama3_json_parser(tools);
    case ToolCallStyle::kPythonic: return make_pythonic_parser(tools);
    case ToolCallStyle::kHermes: break;
  }
  return make_hermes_parser(tools);
}

}  // namespace valora::server
