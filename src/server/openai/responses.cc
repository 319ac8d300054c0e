#include "server/openai/responses.h"

namespace valora::server {
namespace {

OrderedJson token_ids(const std::vector<TokenOutput>& tokens) {
  OrderedJson ids = OrderedJson::array();
  for (const TokenOutput& token : tokens)
    if (token.chosen.id >= 0) ids.push_back(token.chosen.id);
  return ids;
}

// Under vLLM's name of today and its older one, which DeepSeek's API has too.
void add_thought(OrderedJson& out, const std::string& thought) {
  if (thought.empty()) return;
  out["reasoning"] = thought;
  out["reasoning_content"] = thought;
}

void add_finish(OrderedJson& choice, const std::optional<Finish>& finish) {
  choice["finish_reason"] =
      finish ? OrderedJson(finish_reason_name(finish->reason)) : OrderedJson();
  if (finish) choice["stop_reason"] = stop_reason_json(*finish);
}

class ChatAnswerFormat final : public AnswerFormat {
 public:
  const char* id_prefix() const override { return "chatcmpl-"; }
  const char* object() const override { return "chat.completion"; }
  const char* chunk_object() const override { return "chat.completion.chunk"; }
  bool prompt_in_choices() const override { return false; }

  OrderedJson choice(int index, const Choice& choice, AnswerOptions options) const override {
    OrderedJson out = OrderedJson::object();
    out["index"] = index;
    const bool thought_alone = choice.text.empty() && !choice.thought.empty();
    out["message"] = {{"role", "assistant"},
                      {"content", thought_alone ? OrderedJson() : OrderedJson(choice.text)},
                      {"refusal", nullptr}};
    add_thought(out["message"], choice.thought);
    out["logprobs"] = options.logprobs ? chat_logprobs(choice.tokens) : OrderedJson();
    add_finish(out, choice.finish);
    if (options.token_ids) out["token_ids"] = token_ids(choice.tokens);
    return out;
  }

  OrderedJson chunk(int index, const OutputChunk& chunk, bool first, size_t,
                    AnswerOptions options) const override {
    OrderedJson delta = OrderedJson::object();
    if (first) delta["role"] = "assistant";
    add_thought(delta, chunk.thought);
    if (chunk.thought.empty() || !chunk.text.empty()) delta["content"] = chunk.text;
    OrderedJson out = OrderedJson::object();
    out["index"] = index;
    out["delta"] = std::move(delta);
    out["logprobs"] =
        options.logprobs && !chunk.tokens.empty() ? chat_logprobs(chunk.tokens) : OrderedJson();
    add_finish(out, chunk.finish);
    if (options.token_ids) out["token_ids"] = token_ids(chunk.tokens);
    return out;
  }
};

class CompletionAnswerFormat final : public AnswerFormat {
 public:
  const char* id_prefix() const override { return "cmpl-"; }
  const char* object() const override { return "text_completion"; }
  const char* chunk_object() const override { return "text_completion"; }
  bool prompt_in_choices() const override { return true; }

  OrderedJson choice(int index, const Choice& choice, AnswerOptions options) const override {
    return any(index, choice.text, choice.prompt.get(), choice.tokens, choice.finish, 0, options);
  }

  OrderedJson chunk(int index, const OutputChunk& chunk, bool, size_t text_offset,
                    AnswerOptions options) const override {
    return any(index, chunk.text, chunk.prompt.get(), chunk.tokens, chunk.finish, text_offset,
               options);
  }

 private:
  static OrderedJson any(int index, const std::string& text, const std::vector<TokenOutput>* prompt,
                         const std::vector<TokenOutput>& tokens,
                         const std::optional<Finish>& finish, size_t text_offset,
                         AnswerOptions options) {
    OrderedJson out = OrderedJson::object();
    out["index"] = index;
    out["text"] = text;
    out["logprobs"] =
        options.logprobs ? completion_logprobs(options.echo ? prompt : nullptr, tokens, text_offset)
                         : OrderedJson();
    add_finish(out, finish);
    if (options.token_ids) out["token_ids"] = token_ids(tokens);
    return out;
  }
};

bool is_empty_text(const OrderedJson& value) {
  return value.is_string() && value.get_ref<const std::string&>().empty();
}

void finish_with_calls(OrderedJson& choice) {
  if (choice["finish_reason"] == "stop") choice["finish_reason"] = "tool_calls";
}

}  // namespace

void set_tool_calls(OrderedJson& choice, const std::vector<AnswerCall>& calls) {
  if (calls.empty()) return;
  OrderedJson list = OrderedJson::array();
  for (const AnswerCall& call : calls)
    list.push_back({{"id", call.id},
                    {"type", "function"},
                    {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  OrderedJson& message = choice["message"];
  if (is_empty_text(message["content"])) message["content"] = nullptr;
  message["tool_calls"] = std::move(list);
  finish_with_calls(choice);
}

void add_tool_calls(OrderedJson& chunk, const std::vector<AnswerCallDelta>& calls, bool called) {
  if (called) finish_with_calls(chunk);
  if (calls.empty()) return;
  OrderedJson list = OrderedJson::array();
  for (const AnswerCallDelta& call : calls) {
    OrderedJson item = {{"index", call.index}};
    OrderedJson function = OrderedJson::object();
    if (call.name) {
      item["id"] = call.id;
      item["type"] = "function";
      function["name"] = *call.name;
    }
    function["arguments"] = call.arguments;
    item["function"] = std::move(function);
    list.push_back(std::move(item));
  }
  OrderedJson& delta = chunk["delta"];
  if (delta.contains("content") && is_empty_text(delta["content"])) delta.erase("content");
  delta["tool_calls"] = std::move(list);
}

const AnswerFormat& chat_format() {
  static const ChatAnswerFormat format;
  return format;
}

const AnswerFormat& completion_format() {
  static const CompletionAnswerFormat format;
  return format;
}

OrderedJson answer_head(const AnswerHead& head, const char* object) {
  OrderedJson out = OrderedJson::object();
  out["id"] = head.id;
  out["object"] = object;
  out["created"] = head.created;
  out["model"] = head.model;
  return out;
}

OrderedJson usage_json(const Usage& usage) {
  OrderedJson out = OrderedJson::object();
  out["prompt_tokens"] = usage.prompt_tokens;
  out["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  out["completion_tokens"] = usage.completion_tokens;
  out["prompt_tokens_details"] = {{"cached_tokens", usage.cached_tokens}};
  if (usage.thought_tokens > 0)
    out["completion_tokens_details"] = {{"reasoning_tokens", usage.thought_tokens}};
  return out;
}

OrderedJson stop_reason_json(const Finish& finish) {
  if (const auto* id = std::get_if<int32_t>(&finish.stop_reason)) return *id;
  if (const auto* text = std::get_if<std::string>(&finish.stop_reason)) return *text;
  return nullptr;
}

}  // namespace valora::server
