#include "server/openai/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/strings.h"
#include "server/openai/fields.h"
#include "server/openai/generation_fields.h"
#include "server/openai/unsupported_fields.h"

namespace valora::server {
namespace {

constexpr int kDefaultCompletionTokens = 16;  // OpenAI's default
constexpr size_t kMaxPrompts = 1024;
constexpr size_t kMaxChoices = 1024;  // n times the number of prompts
constexpr int kMaxScale = 1000;
constexpr size_t kMaxSaltBytes = 256;
constexpr size_t kMaxAdapters = 64;  // per request

// Numbers that templates write.
Status check_prompt_integers(const Json& body, std::string_view text) {
  if (!body.contains("tools") && !body.contains("chat_template_kwargs")) return {};
  return check_integers_of(text, {"tools", "chat_template_kwargs"});
}

Result<AdapterUse> parse_adapter_use(const Json& item, const std::string& path) {
  if (!item.is_object()) return invalid(fmt::format("\"{}\" must be an object", path), "lora");
  const char* key = item.contains("name") ? "name" : "id";
  const Json& name = member(item, key);
  if (!name.is_string() || name.get_ref<const std::string&>().empty())
    return invalid(fmt::format("\"{}.{}\" must be the name of an adapter", path, key), "lora");
  const Json& scale = member(item, "scale");
  // NaN fails the comparison. With far larger scales products overflow, and the answer would be
  // NaN.
  if (!scale.is_null() && !(scale.is_number() && std::abs(scale.get<double>()) <= kMaxScale))
    return invalid(
        fmt::format("\"{}.scale\" must be a number from -{} to {}", path, kMaxScale, kMaxScale),
        "lora");
  return AdapterUse{name.get<std::string>(), scale.is_null() ? 1.0f : scale.get<float>()};
}

}  // namespace

Result<Target> parse_target(const Json& body) {
  Target target;
  VALORA_TRY(model, field_or<std::string>(body, "model", ""));
  VALORA_TRY(head, optional_field<std::string>(body, "head"));
  target.model = std::move(model);
  target.head = std::move(head);
  const Json& lora = member(body, "lora");
  VALORA_TRY(lora_path, field_or<std::string>(body, "lora_path", ""));
  if (!lora_path.empty()) {
    if (!lora.is_null()) return invalid("give \"lora\" or \"lora_path\", not both", "lora_path");
    target.lora.push_back({std::move(lora_path), 1});
    target.from_lora_path = true;
    return target;
  }
  if (lora.is_null()) return target;
  if (!lora.is_array()) return invalid("\"lora\" must be a list", "lora");
  if (lora.size() > kMaxAdapters)
    return invalid(
        fmt::format("\"lora\" takes at most {} adapters, not {}", kMaxAdapters, lora.size()),
        "lora");
  for (const Json& item : lora) {
    VALORA_TRY(use, parse_adapter_use(item, fmt::format("lora[{}]", target.lora.size())));
    const bool again =
        std::any_of(target.lora.begin(), target.lora.end(),
                    [&](const AdapterUse& earlier) { return earlier.name == use.name; });
    if (again)
      return invalid(fmt::format("\"lora\" names the adapter `{}` twice", shortened(use.name)),
                     "lora");
    target.lora.push_back(std::move(use));
  }
  return target;
}

Result<Sharing> parse_sharing(const Json& body) {
  VALORA_TRY(salt, optional_field<std::string>(body, "cache_salt"));
  if (salt && (salt->empty() || salt->size() > kMaxSaltBytes))
    return invalid(fmt::format("\"cache_salt\" must have from 1 to {} bytes", kMaxSaltBytes),
                   "cache_salt");
  VALORA_TRY(priority, optional_field<int32_t>(body, "priority"));
  const Json &metadata = member(body, "metadata"), &user = member(body, "user");
  return Sharing{std::move(salt).value_or(""), priority,
                 metadata.is_object() ? member(metadata, "application") : Json(),
                 user.is_string() ? user.get<std::string>() : ""};
}

Result<std::optional<int>> parse_truncation(const Json& body) {
  VALORA_TRY(most, integer_in(body, "truncate_prompt_tokens", -1, INT32_MAX));
  if (most == 0)
    return invalid("\"truncate_prompt_tokens\" must be -1 or at least 1", "truncate_prompt_tokens");
  return most;
}

namespace {

Status parse_stream(const Json& body, GenerationBody& out) {
  VALORA_TRY(stream, flag(body, "stream", false));
  out.stream = stream;
  const Json& options = member(body, "stream_options");
  if (options.is_null()) return {};
  if (!options.is_object())
    return invalid("\"stream_options\" must be an object", "stream_options");
  if (!stream)
    return invalid("\"stream_options\" is only allowed with \"stream\": true", "stream_options");
  VALORA_TRY(include_usage, flag(options, "include_usage", false));
  VALORA_TRY(continuous_usage, flag(options, "continuous_usage_stats", false));
  out.include_usage = include_usage;
  out.continuous_usage = include_usage && continuous_usage;
  return {};
}

Result<GenerationBody> parse_shared(const Json& body, std::string_view text) {
  GenerationBody out;
  VALORA_TRY(target, parse_target(body));
  VALORA_TRY(sharing, parse_sharing(body));
  VALORA_TRY(sampling, parse_sampling(body));
  VALORA_TRY(echo, flag(body, "echo", false));  // completions only; allows 0 tokens
  VALORA_TRY(max_tokens, integer_in(body, "max_tokens", echo ? 0 : 1, INT32_MAX));
  VALORA_TRY(return_token_ids, flag(body, "return_token_ids", false));
  VALORA_TRY(constraint, parse_constraint(body, text));
  out.constraint = std::move(constraint);
  VALORA_TRY(json_whitespace, parse_json_whitespace(body));
  out.json_whitespace = json_whitespace;
  out.target = std::move(target);
  out.sharing = std::move(sharing);
  out.sampling = std::move(sampling);
  out.sampling.max_tokens = max_tokens;
  out.echo = echo;
  out.return_token_ids = return_token_ids;
  VALORA_TRY(ids_as_text, flag(body, "return_tokens_as_token_ids", false));
  out.token_ids_as_text = ids_as_text;
  VALORA_TRY(truncate, parse_truncation(body));
  out.truncate_prompt_tokens = truncate;
  VALORA_CHECK(parse_stream(body, out));
  return out;
}

// A string, a list of strings, a list of token ids, or a list of such lists.
Result<std::vector<Prompt>> parse_prompts(const Json& body, const std::string& key) {
  const Json& value = member(body, key);
  std::vector<Prompt> prompts;
  if (value.is_null()) return invalid(fmt::format("\"{}\" is missing", key), key);
  if (value.is_string()) {
    prompts.emplace_back(value.get<std::string>());
    return prompts;
  }
  if (!value.is_array() || value.empty())
    return invalid(fmt::format("\"{}\" must be a string, a list of strings, a list of token ids, "
                               "or a list of such lists",
                               key),
                   key);
  if (value[0].is_number()) {
    VALORA_TRY(ids, integers(value, key));
    prompts.emplace_back(std::move(ids));
    return prompts;
  }
  if (value.size() > kMaxPrompts)
    return invalid(
        fmt::format("\"{}\" takes at most {} prompts, not {}", key, kMaxPrompts, value.size()),
        key);
  for (const Json& item : value) {
    const std::string path = fmt::format("{}[{}]", key, prompts.size());
    if (item.is_string()) {
      prompts.emplace_back(item.get<std::string>());
    } else if (item.is_array()) {
      VALORA_TRY(ids, integers(item, path));
      prompts.emplace_back(std::move(ids));
    } else {
      return invalid(fmt::format("\"{}\" must be a string or a list of token ids", path), path);
    }
  }
  return prompts;
}

}  // namespace

namespace {

Status needs_messages(const Json& body, std::initializer_list<const char*> fields) {
  for (const char* field : fields)
    if (!unused(body, field))
      return invalid(fmt::format("\"{}\" needs \"messages\"", field), field);
  return {};
}

// Confidences are computed from the log probabilities of the tokens that were chosen.
void ask_for_confidence(GenerationBody& out) {
  if (out.constraint && out.constraint->output.confidence && !out.sampling.logprobs)
    out.sampling.logprobs = 0;
}

// Fields of conversations that a client sent.
Status refuse_conversation_fields(const Json& body) {
  return needs_messages(body, {"chat_template", "chat_template_kwargs", "continue_final_message"});
}

}  // namespace

// Bodies without messages do not use a chat template.
Status refuse_chat_fields(const Json& body) {
  VALORA_CHECK(refuse_conversation_fields(body));
  return needs_messages(body, {"media_io_kwargs", "mm_processor_kwargs"});
}

Result<GenerationBody> parse_chat(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, parse_body(text));
  VALORA_CHECK(check_prompt_integers(body, text));
  return parse_chat_body(std::move(body), text, limits);
}

Result<GenerationBody> parse_chat_body(Json body, std::string_view text,
                                       const RequestLimits& limits,
                                       std::optional<ChatPrompt> conversation) {
  VALORA_CHECK(check_chat_fields(body));
  VALORA_TRY(out, parse_shared(body, text));
  VALORA_CHECK(parse_chat_logprobs(body, limits, out));
  ask_for_confidence(out);
  VALORA_TRY(max_completion_tokens, integer_in(body, "max_completion_tokens", 1, INT32_MAX));
  if (max_completion_tokens) out.sampling.max_tokens = max_completion_tokens;
  VALORA_TRY(tools, parse_tools(body, text));
  if (out.constraint && tools.choice != ToolChoice::kNone)
    return invalid(fmt::format("\"{}\" and \"tools\" both define the form of the answer; "
                               "send \"tool_choice\": \"none\" for the first",
                               out.constraint->param),
                   out.constraint->param);
  if (!conversation) {
    VALORA_TRY(parsed, parse_messages(body, limits));
    conversation = std::move(parsed);
  }
  ChatPrompt& prompt = *conversation;
  VALORA_TRY(thinking, parse_thinking(body, prompt));
  out.thinking = thinking;
  prompt.tools = tools.json;
  out.tools = std::move(tools);
  out.prompts.emplace_back(std::move(prompt));
  return out;
}

Result<GenerationBody> parse_completion(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, parse_body(text));
  VALORA_CHECK(refuse_chat_fields(body));
  VALORA_CHECK(check_completion_fields(body));
  VALORA_TRY(out, parse_shared(body, text));
  VALORA_CHECK(parse_completion_logprobs(body, limits, out));
  ask_for_confidence(out);
  if (!out.sampling.max_tokens) out.sampling.max_tokens = kDefaultCompletionTokens;
  VALORA_TRY(prompts, parse_prompts(body, "prompt"));
  if (prompts.size() * out.sampling.n > kMaxChoices)
    return invalid(fmt::format("\"n\" times the prompts is {}; a request takes at most {} choices",
                               prompts.size() * out.sampling.n, kMaxChoices),
                   "n");
  out.prompts = std::move(prompts);
  VALORA_CHECK(check_copies(out));
  return out;
}

// Prompts of endpoints that answer with numbers: a conversation, or "input".
Result<std::vector<Prompt>> parse_inputs(Json& body, const RequestLimits& limits) {
  if (member(body, "messages").is_null()) {
    VALORA_CHECK(refuse_chat_fields(body));
    return parse_prompts(body, "input");
  }
  VALORA_TRY(prompt, parse_messages(body, limits));
  std::vector<Prompt> prompts;
  prompts.emplace_back(std::move(prompt));
  return prompts;
}

Result<ClassifyBody> parse_classify(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, parse_body(text));
  VALORA_CHECK(check_classify_fields(body));
  VALORA_CHECK(check_prompt_integers(body, text));
  ClassifyBody out;
  VALORA_TRY(target, parse_target(body));
  VALORA_TRY(sharing, parse_sharing(body));
  // "softmax" and "activation" are vLLM's earlier names of the field.
  VALORA_TRY(softmax, flag(body, "softmax", true));
  VALORA_TRY(activation, flag(body, "activation", softmax));
  VALORA_TRY(use_activation, flag(body, "use_activation", activation));
  VALORA_TRY(truncate, parse_truncation(body));
  VALORA_TRY(prompts, parse_inputs(body, limits));
  out.truncate_prompt_tokens = truncate;
  out.target = std::move(target);
  out.sharing = std::move(sharing);
  out.use_activation = use_activation;
  out.prompts = std::move(prompts);
  return out;
}

Result<EmbedBody> parse_embed(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, parse_body(text));
  VALORA_CHECK(check_embed_fields(body));
  VALORA_CHECK(check_prompt_integers(body, text));
  EmbedBody out;
  VALORA_TRY(target, parse_target(body));
  VALORA_TRY(sharing, parse_sharing(body));
  VALORA_TRY(format, field_or<std::string>(body, "encoding_format", "float"));
  if (format != "float" && format != "base64")
    return invalid("\"encoding_format\" must be \"float\" or \"base64\"", "encoding_format");
  VALORA_TRY(dimensions, optional_field<int64_t>(body, "dimensions"));
  VALORA_TRY(use_activation, flag(body, "use_activation", true));  // vLLM's later name
  VALORA_TRY(normalize, flag(body, "normalize", use_activation));
  VALORA_TRY(truncate, parse_truncation(body));
  VALORA_TRY(fields, parse_item_fields(body));
  if (!member(body, "messages").is_null()) {
    if (fields.instruction || fields.prompt_name)
      return invalid("an instruction to \"messages\" is a message of the role system",
                     fields.instruction ? "instruction" : "prompt_name");
    VALORA_TRY(conversation, parse_messages(body, limits));
    out.conversation = std::move(conversation);
  } else {
    VALORA_CHECK(refuse_conversation_fields(body));
    VALORA_TRY(items, parse_items(body, "input", /*ids=*/true));
    VALORA_CHECK(check_rendering(fields, {items}));
    out.items = std::move(items);
  }
  out.fields = std::move(fields);
  out.truncate_prompt_tokens = truncate;
  out.target = std::move(target);
  out.sharing = std::move(sharing);
  out.base64 = format == "base64";
  out.dimensions = dimensions;
  out.normalize = normalize;
  return out;
}

Result<TokenizeBody> parse_tokenize(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, parse_body(text));
  VALORA_CHECK(refuse_fields(body, "/tokenize"));
  VALORA_CHECK(check_prompt_integers(body, text));
  TokenizeBody out;
  VALORA_TRY(target, parse_target(body));
  VALORA_TRY(tools, parse_tools(body, text));
  out.target = std::move(target);
  if (!member(body, "messages").is_null()) {
    VALORA_TRY(prompt, parse_messages(body, limits));
    VALORA_TRY(add_special_tokens, flag(body, "add_special_tokens", false));
    if (!prompt.add_generation_prompt) prompt.add_generation_prompt = true;
    prompt.tools = std::move(tools.json);
    out.prompt = std::move(prompt);
    out.add_special_tokens = add_special_tokens;
    return out;
  }
  VALORA_CHECK(refuse_chat_fields(body));
  VALORA_TRY(prompt, required_field<std::string>(body, "prompt"));
  VALORA_TRY(add_special_tokens, flag(body, "add_special_tokens", true));
  out.prompt = std::move(prompt);
  out.add_special_tokens = add_special_tokens;
  return out;
}

Result<DetokenizeBody> parse_detokenize(std::string_view text) {
  VALORA_TRY(body, parse_body(text));
  DetokenizeBody out;
  VALORA_TRY(target, parse_target(body));
  VALORA_TRY(tokens, integers(member(body, "tokens"), "tokens"));
  out.target = std::move(target);
  out.tokens = std::move(tokens);
  return out;
}

}  // namespace valora::server
