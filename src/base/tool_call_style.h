// How a model writes function calls ("tool calls") in its answer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace valora {

enum class ToolCallStyle : uint8_t {
  kHermes,  // <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>, any number, after text
  kLlama3Json,  // {"name": "f", "parameters": {"a": 1}}; several are separated by ";"
  kPythonic,    // [f(a=1), g(b="x")]
};

// The names in --tool-call-parser.
inline constexpr std::array<std::pair<std::string_view, ToolCallStyle>, 3> kToolCallStyles = {
    {{"hermes", ToolCallStyle::kHermes},
     {"llama3_json", ToolCallStyle::kLlama3Json},
     {"pythonic", ToolCallStyle::kPythonic}}};

inline std::optional<ToolCallStyle> tool_call_style(std::string_view name) {
  for (const auto& [known, style] : kToolCallStyles)
    if (known == name) return style;
  return {};
}

}  // namespace valora
