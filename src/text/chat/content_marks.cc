#include "text/chat/content_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text/strings.h"
#include "base/text/unicode.h"
#include "jinja/values/text_ops.h"

namespace valora::text {
namespace {

// Noncharacters, which Unicode reserves for internal use.
constexpr char32_t kFirstMark = 0xFDD0, kLastMark = 0xFDEF;

std::string utf8_of(char32_t code_point) {
  std::string out;
  append_utf8(out, code_point);
  return out;
}

// The mark as `tojson` writes it with ensure_ascii.
std::string escape_of(std::string_view mark) {
  return fmt::format("\\u{:04x}", static_cast<uint32_t>(decode_utf8(mark).code_point));
}

bool has_mark(std::string_view text, std::string_view mark) {
  return text.find(mark) != text.npos || text.find(escape_of(mark)) != text.npos;
}

template <typename Visit>
void each_text(std::vector<ChatMessage>& messages, Visit visit) {
  for (ChatMessage& message : messages) {
    for (ChatPart& part : message.parts) visit(part.text);
    for (ToolCall& call : message.tool_calls) {
      visit(call.id);
      visit(call.name);
    }
    visit(message.tool_call_id);
    visit(message.name);
    if (message.thought) visit(*message.thought);
  }
}

// A mark that does not occur in any of the texts; nullopt if all do.
std::optional<std::string> unused_mark(std::vector<ChatMessage>& messages, const OrderedJson& tools,
                                       const Json& variables) {
  std::vector<std::string> json = {tools.dump(), variables.dump()};
  for (const ChatMessage& message : messages)
    for (const ToolCall& call : message.tool_calls) json.push_back(call.arguments.dump());
  for (char32_t code = kFirstMark; code <= kLastMark; ++code) {
    std::string mark = utf8_of(code);
    bool used = std::ranges::any_of(json, [&](const auto& text) { return has_mark(text, mark); });
    each_text(messages, [&](const std::string& text) { used = used || has_mark(text, mark); });
    if (!used) return mark;
  }
  return std::nullopt;
}

// Finds the trie's next text at or after an offset.
class NextMatch {
 public:
  NextMatch(const TokenTrie& trie, std::string_view text) : trie_(trie), text_(text) {}
  bool begins_at(size_t offset) {
    if (!searched_ || (match_ && match_->begin < offset)) match_ = trie_.find(text_, offset);
    searched_ = true;
    return match_ && match_->begin == offset;
  }

 private:
  const TokenTrie& trie_;
  std::string_view text_;
  std::optional<TokenTrie::Match> match_;
  bool searched_ = false;
};

bool is_combining(std::string_view text) {
  return !text.empty() && general_category(decode_utf8(text).code_point).starts_with('M');
}

}  // namespace

ContentMarks::ContentMarks(const Tokenizer& tokenizer, std::span<const int32_t> placeholders) {
  std::vector<std::pair<std::string, int32_t>> ordinary;
  std::vector<std::string> special;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_added(id)) continue;
    const std::string& token = *tokenizer.token_text(id);
    if (!tokenizer.is_special(id) && std::ranges::find(placeholders, id) == placeholders.end()) {
      ordinary.emplace_back(token, id);
      continue;
    }
    special.push_back(token);
    const Utf8Step first = decode_utf8(token);
    if (first.length == token.size()) single_ = token;
    if (is_word(first.code_point))
      words_.insert(token, id);
    else
      starts_.insert(first.code_point);
  }
  for (const auto& [token, id] : ordinary)
    if (std::ranges::none_of(special, [&](const auto& other) { return other.starts_with(token); }))
      ordinary_.insert(token, id);
}

std::string ContentMarks::marked(std::string_view text, std::string_view mark) const {
  const std::string valid = to_valid_utf8(text);
  std::string out;
  NextMatch word(words_, valid), ordinary(ordinary_, valid);
  size_t at = 0;
  jinja::each_code_point(valid, [&](char32_t c, std::string_view bytes) {
    out += bytes;
    // A mark must not separate a combining character from its base.
    if ((starts_.contains(c) && !ordinary.begins_at(at) &&
         !is_combining(std::string_view(valid).substr(at + bytes.size()))) ||
        word.begins_at(at))
      out += mark;
    at += bytes.size();
  });
  return out;
}

template <typename Object>
Object ContentMarks::marked_json(const Object& json, const std::string& mark) const {
  if (json.is_string()) return marked(json.template get_ref<const std::string&>(), mark);
  if (!json.is_structured()) return json;
  Object out = json.is_array() ? Object::array() : Object::object();
  for (const auto& [key, value] : json.items()) {
    if (json.is_array())
      out.push_back(marked_json(value, mark));
    else
      out[marked(key, mark)] = marked_json(value, mark);
  }
  return out;
}

Result<std::string> ContentMarks::apply(std::vector<ChatMessage>& messages, OrderedJson& tools,
                                        Json& variables) const {
  if (!single_.empty())
    return not_implemented("the tokenizer's special token \"" + shortened(single_) +
                               "\" is one character, so it cannot be kept out of texts; start the "
                               "server without --no-special-tokens-in-content",
                           "messages");
  const auto mark = unused_mark(messages, tools, variables);
  if (!mark)
    return invalid("the conversation has all noncharacters from U+FDD0 to U+FDEF; leave some out",
                   "messages");
  each_text(messages, [&](std::string& text) { text = marked(text, *mark); });
  for (ChatMessage& message : messages)
    for (ToolCall& call : message.tool_calls) call.arguments = marked_json(call.arguments, *mark);
  tools = marked_json(tools, *mark);
  variables = marked_json(variables, *mark);
  return *mark;
}

std::string with_marks_unescaped(const std::string& text, std::string_view mark) {
  if (mark.empty()) return text;
  const std::string escape = escape_of(mark);
  std::string out;
  size_t done = 0;
  for (size_t at; (at = text.find(escape, done)) != text.npos; done = at + escape.size())
    out.append(text, done, at - done).append(mark);
  return out.append(text, done);
}

std::string without_marks(std::string_view text, std::string_view mark) {
  std::string out;
  for (size_t at; !mark.empty() && (at = text.find(mark)) != text.npos;
       text.remove_prefix(at + mark.size()))
    out += text.substr(0, at);
  return out += text;
}

}  // namespace valora::text
