#include "server/openai/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/json/parse_ordered.h"
#include "base/text/strings.h"
#include "server/openai/fields.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

constexpr size_t kMaxTools = 128;
constexpr size_t kMaxToolNameBytes = 128;

Error wrong_tools(const std::string& path, std::string_view expected) {
  return invalid(fmt::format("\"{}\" must be {}", path, expected), "tools");
}

// Names appear in grammars and in the text of calls.
bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxToolNameBytes && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
}

Result<Tool> parse_tool(const OrderedJson& tool, const std::string& path) {
  if (!tool.is_object()) return wrong_tools(path, "an object");
  const auto type = tool.find("type");
  if (type == tool.end() || !type->is_string()) return wrong_tools(path + ".type", "a string");
  if (*type != "function")
    return not_implemented(fmt::format("tools of type \"{}\" are not supported by this server",
                                       shortened(type->get<std::string>(), 40)),
                           "tools");
  const auto function = tool.find("function");
  if (function == tool.end() || !function->is_object())
    return wrong_tools(path + ".function", "an object");
  const auto name = function->find("name");
  if (name == function->end() || !name->is_string() ||
      !is_tool_name(name->get_ref<const std::string&>()))
    return wrong_tools(
        path + ".function.name",
        fmt::format("1 to {} letters, digits, \"_\", \"-\" and \".\"", kMaxToolNameBytes));
  Tool out{.name = name->get<std::string>(), .parameters = kNoParameters};
  const auto parameters = function->find("parameters");
  if (parameters != function->end() && !parameters->is_null()) {
    if (!parameters->is_object())
      return wrong_tools(path + ".function.parameters", "a JSON schema");
    out.parameters = parameters->empty() ? "" : to_text(*parameters);
  }
  const auto strict = function->find("strict");
  if (strict != function->end() && !strict->is_null()) {
    if (!strict->is_boolean()) return wrong_tools(path + ".function.strict", "a boolean");
    out.strict = strict->get<bool>();
  }
  return out;
}

Result<std::vector<Tool>> parse_list(const OrderedJson& list) {
  if (!list.is_array()) return wrong_tools("tools", "a list");
  if (list.size() > kMaxTools)
    return invalid(fmt::format("\"tools\" takes at most {}, not {}", kMaxTools, list.size()),
                   "tools");
  std::vector<Tool> tools;
  for (size_t i = 0; i < list.size(); ++i) {
    VALORA_TRY(tool, parse_tool(list[i], fmt::format("tools[{}]", i)));
    if (std::ranges::any_of(tools, [&](const Tool& earlier) { return earlier.name == tool.name; }))
      return invalid(fmt::format("\"tools\" has the function \"{}\" twice", tool.name), "tools");
    tools.push_back(std::move(tool));
  }
  return tools;
}

Error wrong_choice(std::string_view reason) {
  return invalid(fmt::format("\"tool_choice\" {}", reason), "tool_choice");
}

// Keeps only the tools named in a list of {"type": "function", "function": {"name"}}.
Status keep_named(const Json& named, std::vector<Tool>& tools) {
  std::vector<Tool> kept;
  for (const Json& item : named) {
    const Json& function = item.is_object() ? member(item, "function") : item;
    const Json& name = function.is_object() ? member(function, "name") : function;
    if (!name.is_string()) return wrong_choice("must name functions by \"function\": {\"name\"}");
    const auto found = std::ranges::find(tools, name.get<std::string>(), &Tool::name);
    if (found == tools.end())
      return wrong_choice(fmt::format("names the function \"{}\", which is not in \"tools\"",
                                      shortened(name.get<std::string>(), 80)));
    kept.push_back(*found);
  }
  if (kept.empty()) return wrong_choice("allows no function");
  tools = std::move(kept);
  return {};
}

Result<ToolChoice> mode_of(const Json& mode) {
  if (mode == "none") return ToolChoice::kNone;
  if (mode == "auto") return ToolChoice::kAuto;
  if (mode == "required") return ToolChoice::kRequired;
  return wrong_choice("must be \"none\", \"auto\", \"required\" or name a function");
}

bool names_one(const Json& choice) {
  return choice.is_object() && member(choice, "type") == "function";
}

Result<ToolChoice> parse_choice(const Json& choice, std::vector<Tool>& tools) {
  if (choice.is_null()) return tools.empty() ? ToolChoice::kNone : ToolChoice::kAuto;
  if (choice.is_string()) {
    VALORA_TRY(mode, mode_of(choice));
    if (mode == ToolChoice::kRequired && tools.empty()) return wrong_choice("needs \"tools\"");
    return tools.empty() ? ToolChoice::kNone : mode;
  }
  if (!choice.is_object()) return wrong_choice("must be a string or an object");
  if (names_one(choice)) {
    VALORA_CHECK(keep_named(Json::array({choice}), tools));
    return ToolChoice::kRequired;
  }
  const Json& allowed = member(choice, "allowed_tools");
  if (member(choice, "type") != "allowed_tools" || !allowed.is_object() ||
      !member(allowed, "tools").is_array())
    return wrong_choice("must be {\"type\": \"function\", \"function\": {\"name\"}}");
  VALORA_TRY(mode, mode_of(member(allowed, "mode")));
  VALORA_CHECK(keep_named(member(allowed, "tools"), tools));
  return mode;
}

}  // namespace

Result<ToolRequest> parse_tools(const Json& body, std::string_view text) {
  ToolRequest out;
  VALORA_TRY(parallel, flag(body, "parallel_tool_calls", true));
  out.parallel = parallel;
  if (!unused(body, "tools")) {
    const auto ordered = parse_ordered(text);
    const OrderedJson& list = ordered.at("tools");
    VALORA_TRY(tools, parse_list(list));
    out.callable = std::move(tools);
    out.json = to_text(list);
  }
  VALORA_TRY(choice, parse_choice(member(body, "tool_choice"), out.callable));
  out.choice = choice;
  if (names_one(member(body, "tool_choice"))) out.parallel = false;  // it is called once
  return out;
}

}  // namespace valora::server
