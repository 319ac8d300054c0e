#include "text/chat/mistral_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "text/json_fields.h"
#include "text/word_patterns.h"

namespace valora::text {
namespace {

constexpr char kKey[] = "fix_mistral_regex";
constexpr std::array kTypes = {"mistral", "mistral3", "voxtral", "ministral", "pixtral"};
constexpr size_t kFewestTokens = 100'001;

// "5.0.0" or later, as Python's packaging orders versions: 5.0.0.dev0 and 5.0.0rc1 are before it.
Result<bool> is_mended_release(std::string_view version, const std::string& where) {
  std::array<int, 3> release{};
  const char* at = version.data();
  const char* const end = at + version.size();
  if (at != end && *at == 'v') ++at;
  for (size_t i = 0;; ++i) {
    int number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || *at == '-') {
      if (i > 0) break;  // the dot of a suffix
      return refuse(where, "transformers_version " + in_quotes(version) +
                               " is no version; it decides whether " + kKey + " applies");
    }
    if (i < release.size()) release[i] = number;
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  const std::string_view suffix(at, static_cast<size_t>(end - at));
  if (release != std::array{5, 0, 0}) return release > std::array{5, 0, 0};
  return suffix.empty() || suffix.front() == '+' || suffix.starts_with("post");
}

// Whether config.json is of a model and a release whose expression is the older one.
Result<bool> has_older_words(const InputFolder& folder) {
  VALORA_TRY(config, read_optional_json(folder, "config.json"));
  if (!config.is_object()) return false;  // such as an adapter's folder
  const std::string where = folder.path_of("config.json");
  VALORA_TRY(version, field_or<std::string>(config, where, "transformers_version", ""));
  VALORA_TRY(type, field_or<std::string>(config, where, "model_type", ""));
  if (!version.empty()) {
    VALORA_TRY(mended, is_mended_release(version, where));
    if (mended) return false;
  }
  return type.empty() || std::ranges::find(kTypes, type) != kTypes.end();
}

size_t tokens_of(const Json& tokenizer) {
  const auto model = tokenizer.find("model");
  if (model == tokenizer.end() || !model->is_object()) return 0;
  const auto vocab = model->find("vocab");
  if (vocab == model->end()) return 0;
  size_t count = vocab->size();
  const auto added = tokenizer.find("added_tokens");
  if (added == tokenizer.end() || !added->is_array()) return count;
  for (const Json& token : *added)
    if (token.is_object() && token.contains("content") && token["content"].is_string() &&
        !vocab->contains(token["content"].get_ref<const std::string&>()))
      ++count;
  return count;
}

bool has_type(const Json& part, std::string_view type) {
  return part.is_object() && part.contains("type") && part["type"] == type;
}

}  // namespace

Status mend_mistral_words(const InputFolder& folder, Json& tokenizer) {
  VALORA_TRY(config, read_optional_json(folder, "tokenizer_config.json"));
  if (!config.is_object()) return {};
  const std::string where = folder.path_of("tokenizer_config.json");
  VALORA_TRY(asked, field_or<bool>(config, where, kKey, false));
  if (!asked || !tokenizer.is_object() || tokens_of(tokenizer) < kFewestTokens) return {};
  Json& current = tokenizer["pre_tokenizer"];
  if (current.is_null()) return {};
  VALORA_TRY(older, has_older_words(folder));
  if (!older) return {};
  const Json words = {{"type", "Split"},
                      {"pattern", {{"Regex", kTekkenWords}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  if (has_type(current, "Sequence")) {
    const auto steps = current.find("pretokenizers");
    if (steps == current.end() || !steps->is_array() || steps->empty())
      return refuse(where, std::string(kKey) + ": the pre-tokenizer has no first step to replace");
    steps->front() = words;
    return {};
  }
  if (has_type(current, "Metaspace"))
    current = {{"type", "ByteLevel"},
               {"add_prefix_space", false},
               {"trim_offsets", true},
               {"use_regex", false}};
  current = {{"type", "Sequence"}, {"pretokenizers", {words, current}}};
  return {};
}

}  // namespace valora::text
