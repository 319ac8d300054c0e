#include "engine/added_tokens.h"

#include "base/input_folder.h"
#include "base/json.h"
#include "base/strings.h"

namespace valora {
namespace {

constexpr JsonLimits kTokenizerLimits{
    .max_bytes = size_t{64} << 20, .max_depth = 32, .max_values = size_t{1} << 23};

Status check_token(const std::string& text, const Json& id, const text::Tokenizer& base) {
  const auto known = base.token_to_id(text);
  if (known && id.is_number_integer() && id.get<int64_t>() == *known) return {};
  return unprocessable("the adapter's tokenizer has the token \"" + shortened(text) + "\" (" +
                       shortened(id.dump()) + "), which the base model's " +
                       (known ? "has as " + std::to_string(*known) : "lacks") +
                       "; adapters with tokens of their own cannot be served by this version");
}

Result<Json> read(const InputFolder& folder, const char* name) {
  VALORA_TRY(text, folder.text(name, kTokenizerLimits.max_bytes));
  return parse_json(text, folder.path_of(name), kTokenizerLimits);
}

}  // namespace

Status check_added_tokens(const adapters::AdapterSpec& spec, const text::Tokenizer& base) {
  if (spec.parts.empty()) return {};
  VALORA_TRY(folder, InputFolder::open({spec.path, spec.root}));
  if (folder.has("tokenizer.json")) {
    VALORA_TRY(tokenizer, read(folder, "tokenizer.json"));
    if (!tokenizer.is_object()) return {};
    for (const Json& token : tokenizer.value("added_tokens", Json::array()))
      if (token.is_object() && token.contains("content") && token.at("content").is_string())
        VALORA_CHECK(
            check_token(token.at("content").get<std::string>(), token.value("id", Json()), base));
  } else if (folder.has("added_tokens.json")) {
    VALORA_TRY(tokens, read(folder, "added_tokens.json"));
    if (!tokens.is_object()) return {};
    for (const auto& [text, id] : tokens.items()) VALORA_CHECK(check_token(text, id, base));
  }
  return {};
}

}  // namespace valora
