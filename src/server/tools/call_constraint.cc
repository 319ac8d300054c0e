#include "server/tools/call_constraint.h"

#include <string>

#include "base/json/parse_ordered.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

// Most white space allowed between parts of the arguments. If more is allowed, small models may
// never stop writing it.
constexpr int kMaxSpaceInCall = 1;

OrderedJson schema_of(const Tool& tool, bool weak) {
  const bool weakened = weak && !tool.strict && tool.parameters != kNoParameters;
  if (tool.parameters.empty() || weakened) return {{"type", "object"}};
  return parse_ordered(tool.parameters);
}

// The text around the arguments, in the style's syntax.
OrderedJson tag_of(ToolCallStyle style, const Tool& tool, bool weak) {
  const bool hermes = style == ToolCallStyle::kHermes;
  const std::string name = "{\"name\": \"" + tool.name + "\", ";
  return {
      {"type", "tag"},
      {"begin", hermes ? "<tool_call>\n" + name + "\"arguments\": " : name + "\"parameters\": "},
      {"content",
       {{"type", "json_schema"},
        {"json_schema", schema_of(tool, weak)},
        {"max_whitespace_cnt", kMaxSpaceInCall}}},
      {"end", hermes ? "}\n</tool_call>" : "}"}};
}

std::string structural_tag(ToolCallStyle style, const ToolRequest& tools, bool weak) {
  OrderedJson tags = OrderedJson::array();
  for (const Tool& tool : tools.callable) tags.push_back(tag_of(style, tool, weak));
  OrderedJson format;
  if (tools.choice == ToolChoice::kAuto) {
    format = {{"type", "triggered_tags"}, {"triggers", {"<tool_call>"}}};
  } else {
    format = {{"type", "tags_with_separator"},
              {"separator", style == ToolCallStyle::kHermes ? "\n" : "; "},
              {"at_least_one", true}};
  }
  format["tags"] = std::move(tags);
  format["stop_after_first"] = !tools.parallel;
  return to_text({{"type", "structural_tag"}, {"format", std::move(format)}});
}

}  // namespace

std::optional<AnswerConstraint> call_constraint(ToolCallStyle style, const ToolRequest& tools) {
  if (tools.choice == ToolChoice::kNone) return {};
  if (tools.choice == ToolChoice::kAuto && style != ToolCallStyle::kHermes) return {};
  return AnswerConstraint{.kind = AnswerConstraint::Kind::kStructuralTag,
                          .text = structural_tag(style, tools, false),
                          .choices = {},
                          .strict = true,
                          .param = "tools",
                          .fallback = structural_tag(style, tools, true)};
}

}  // namespace valora::server
