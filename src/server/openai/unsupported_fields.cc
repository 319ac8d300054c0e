#include "server/openai/unsupported_fields.h"

#include <fmt/format.h>

#include "base/text/strings.h"
#include "server/openai/fields.h"
#include "server/openai/request_fields.h"

namespace valora::server {
namespace {

Error unsupported(std::string_view field, std::string_view what = {}) {
  const std::string_view space = what.empty() ? "" : " ";
  return not_implemented(
      fmt::format("\"{}\"{}{} is not supported by this server", field, space, what),
      std::string(field));
}

// Fields that preceded "tools" and "tool_choice".
Status check_functions(const Json& body) {
  const Json& call = member(body, "function_call");
  if (!unused(body, "function_call") && call != "none" && call != "auto")
    return unsupported("function_call", "(use \"tool_choice\")");
  if (unused(body, "functions") || member(body, "tool_choice") == "none") return {};
  return unsupported("functions", "(use \"tools\")");
}

// Text completions do not support tools.
Status check_tools(const Json& body) {
  const Json& choice = member(body, "tool_choice");
  if (choice == "none") return {};
  if (!unused(body, "tools")) return unsupported("tools");
  if (choice.is_null() || choice == "auto") return {};
  if (!choice.is_string() && !choice.is_object())
    return invalid("\"tool_choice\" must be a string or an object", "tool_choice");
  return unsupported("tool_choice", "other than \"none\" and \"auto\"");
}

// "left" keeps the last tokens, which truncate_prompt_tokens does.
Status check_truncation_side(const Json& body) {
  const Json& side = member(body, "truncation_side");
  if (unused(body, "truncation_side") || side == "left") return {};
  return unsupported("truncation_side", "other than \"left\"");
}

// vLLM's choice among libraries that apply the same form. One of its options changes the form.
Status check_backend(const Json& body) {
  if (unused(body, "guided_decoding_backend")) return {};
  VALORA_TRY(backend, optional_field<std::string>(body, "guided_decoding_backend"));
  if (backend->find("disable-any-whitespace") == std::string::npos) return {};
  return unsupported("guided_decoding_backend",
                     "with disable-any-whitespace (send structured_outputs.json_whitespace)");
}

Status check_generation(const Json& body) {
  VALORA_CHECK(check_functions(body));
  VALORA_CHECK(check_truncation_side(body));
  VALORA_CHECK(check_backend(body));
  const Json& modalities = member(body, "modalities");
  if (!modalities.is_null() && modalities != Json::array({"text"}))
    return unsupported("modalities", "other than text");
  VALORA_TRY(best_of, integer_in(body, "best_of", 1, INT32_MAX));
  VALORA_TRY(n, optional_field<int32_t>(body, "n"));
  if (best_of && *best_of != n.value_or(1)) return unsupported("best_of", "other than \"n\"");
  return {};
}

// Text prompts always get the tokenizer's special tokens, conversations those of their template.
Status check_special_tokens(const Json& body) {
  const bool chat = !member(body, "messages").is_null();
  VALORA_TRY(add_special_tokens, flag(body, "add_special_tokens", !chat));
  if (add_special_tokens == !chat) return {};
  return unsupported("add_special_tokens",
                     chat ? "true with \"messages\"" : "false (send token ids instead)");
}

}  // namespace

Status check_verbosity(const Json& object, const std::string& param) {
  const Json& verbosity = member(object, "verbosity");
  if (verbosity.is_null() || verbosity == "low" || verbosity == "medium" || verbosity == "high")
    return {};
  return invalid("\"verbosity\" must be \"low\", \"medium\" or \"high\"", param);
}

Status refuse_fields(const Json& body, std::string_view path) {
  for (const std::string& field : refused_fields(path))
    if (!unused(body, field)) return unsupported(field);
  return {};
}

Status check_chat_fields(const Json& body) {
  VALORA_CHECK(check_generation(body));
  VALORA_CHECK(check_verbosity(body, "verbosity"));
  VALORA_CHECK(refuse_fields(body, "/v1/chat/completions"));
  return check_special_tokens(body);
}

Status check_completion_fields(const Json& body) {
  VALORA_CHECK(check_generation(body));
  VALORA_CHECK(check_tools(body));
  VALORA_CHECK(refuse_fields(body, "/v1/completions"));
  return check_special_tokens(body);
}

Status check_classify_fields(const Json& body) {
  VALORA_CHECK(check_truncation_side(body));
  return check_special_tokens(body);
}

Status check_embed_fields(const Json& body) {
  VALORA_CHECK(refuse_fields(body, "/v1/embeddings"));
  return check_truncation_side(body);
}

}  // namespace valora::server
