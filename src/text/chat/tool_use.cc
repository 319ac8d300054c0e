#include "text/chat/tool_use.h"

#include <cctype>

namespace valora::text {
namespace {

bool has_word(std::string_view text, std::string_view word) {
  const auto part_of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !part_of_word(text[at - 1])) &&
        (end == text.size() || !part_of_word(text[end])))
      return true;
  }
  return false;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Published templates describe the format of calls in their instructions to the model.
ToolCallStyle style_of(std::string_view source) {
  if (has(source, "<tool_call>")) return ToolCallStyle::kHermes;
  if (has(source, "func_name1(") || has(source, "(params_name1=")) return ToolCallStyle::kPythonic;
  if (has(source, "<|python_tag|>") || has(source, "\"parameters\": dictionary") ||
      has(source, "Environment: ipython"))
    return ToolCallStyle::kLlama3Json;
  return ToolCallStyle::kHermes;
}

}  // namespace

ToolUse find_tool_use(std::string_view source) {
  return {has_word(source, "tools"), style_of(source)};
}

}  // namespace valora::text
