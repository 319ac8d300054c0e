#include "serving/prompts/language.h"

#include <algorithm>

#include "base/log/log.h"
#include "base/text/strings.h"
#include "serving/prompts/prompt_tokens.h"
#include "text/chat/chat_template.h"

namespace valora::serving {
namespace {

constexpr const char* kTokenizer = "tokenizer.json";

// An upper bound on the bytes of a token, so that far too long text is refused before it is
// tokenized. Assumes that the tokenizer hardly shortens the text (by normalization or stripped
// white space).
size_t longest_token(const text::Tokenizer& tokenizer) {
  size_t longest = 16;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    longest = std::max(longest, tokenizer.token_bytes(id).size());
  return longest;
}

bool has_as(const text::Tokenizer& base, const std::string& text, const Json& id) {
  const auto known = base.token_to_id(text);
  return known && id.is_number_integer() && id.get<int64_t>() == *known;
}

Result<bool> has_other_tokens(const InputFolder& folder, const text::Tokenizer& base) {
  if (folder.has(kTokenizer)) {
    VALORA_TRY(tokenizer, read_json(folder, kTokenizer));
    if (!tokenizer.is_object()) return false;
    return std::ranges::any_of(
        tokenizer.value("added_tokens", Json::array()), [&](const Json& token) {
          return token.is_object() && token.contains("content") &&
                 token.at("content").is_string() &&
                 !has_as(base, token.at("content").get<std::string>(), token.value("id", Json()));
        });
  }
  VALORA_TRY(tokens, read_optional_json(folder, "added_tokens.json"));
  if (!tokens.is_object()) return false;
  for (const auto& [text, id] : tokens.items())
    if (!has_as(base, text, id))
      return unprocessable(
          folder.path_of("added_tokens.json") + " has the token \"" + shortened(text) +
          "\", which is missing from the base model's tokenizer or has another id there, and the "
          "folder has no tokenizer.json: save the adapter's tokenizer as a fast one");
  return false;
}

// Media in prompts are written with the base model's added tokens, so their ids must match.
Status check_known_tokens(const text::Tokenizer& own, const text::Tokenizer& base,
                          const std::string& folder) {
  for (const int32_t id : base.added_ids()) {
    const std::string& text = *base.token_text(id);
    const auto found = own.token_to_id(text);
    if (found && *found != id)
      return unprocessable(folder + "/tokenizer.json has the base model's token \"" +
                               shortened(text) + "\" (" + std::to_string(id) + ") as " +
                               std::to_string(*found),
                           folder);
  }
  return {};
}

// Only a warning, because prompts with such a token are refused, as for the base model's tokenizer.
void warn_of_tokens_without_embedding(const Language& language) {
  for (const int32_t id : language.tokenizer->added_ids())
    if (id >= language.vocab) {
      spdlog::warn("{}: the token \"{}\" ({}) has no embedding, of which there are {}",
                   language.folder.path, shortened(*language.tokenizer->token_text(id)), id,
                   language.vocab);
      return;
    }
}

// They can be neither chosen nor forced.
void leave_out_tokens_without_embedding(ThoughtSyntax& syntax, int64_t vocab) {
  const auto lacks = [vocab](int32_t id) { return id >= vocab; };
  if (syntax.begin_token && lacks(*syntax.begin_token)) syntax.begin_token.reset();
  if (std::ranges::any_of(syntax.end_tokens, lacks)) syntax.end_tokens.clear();
}

Status read_eos(Language& language) {
  VALORA_TRY(special, text::read_special_tokens(language.folder));
  const auto it = special.find("eos_token");
  if (it == special.end() || !it->is_string()) return {};
  const auto id = language.tokenizer->token_to_id(it->get<std::string>());
  std::vector<int32_t>& ends = language.eos_token_ids;
  if (id && std::ranges::find(ends, *id) == ends.end()) ends.push_back(*id);
  return {};
}

}  // namespace

Status finish_language(Language& language, std::span<const int32_t> placeholders,
                       const FormLimits& limits, ReasoningParser parser) {
  const text::Tokenizer& tokenizer = *language.tokenizer;
  language.content_marks = std::make_unique<text::ContentMarks>(tokenizer, placeholders);
  language.around = tokenizer.encode("", /*add_special_tokens=*/true);
  VALORA_CHECK(check_vocabulary(tokenizer, language.vocab, language.folder.path));
  language.longest_token = longest_token(tokenizer);
  language.grammars = std::make_shared<AnswerGrammars>(language.tokenizer, language.eos_token_ids,
                                                       language.vocab, limits);
  language.thoughts = find_thought_syntax(parser, *language.chat_format, tokenizer);
  if (language.thoughts) leave_out_tokens_without_embedding(*language.thoughts, language.vocab);
  return {};
}

Result<bool> needs_language(const adapters::AdapterSpec& spec, const Language& base) {
  if (spec.parts.empty()) return false;
  if (spec.vocabulary.tokens != 0) return true;
  VALORA_TRY(folder, InputFolder::open({spec.path, spec.root}));
  return has_other_tokens(folder, *base.tokenizer);
}

Result<Digest> digest_of_language(const adapters::AdapterSpec& spec) {
  VALORA_TRY(folder, InputFolder::open({spec.path, spec.root}));
  DigestBuilder digest;
  digest.add(spec.vocabulary.tokens);
  for (const char* name :
       {kTokenizer, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
        "chat_template.json", "chat_template.jinja", "processor_config.json"}) {
    digest.add(name).add(folder.has(name));
    if (!folder.has(name)) continue;
    VALORA_TRY(text, folder.text(name, JsonLimits().max_bytes));
    digest.add(text.size()).add(text);
  }
  return digest.finish();
}

Result<Language> read_language(const adapters::AdapterSpec& spec, const Language& base,
                               bool keeps_template, const std::string& image_placeholder,
                               const std::string& video_placeholder) {
  Language language;
  language.folder = FolderPath(spec.path, spec.root);
  language.vocab = spec.vocabulary.tokens != 0 ? spec.vocabulary.tokens : base.vocab;
  language.tokenizer = base.tokenizer;
  language.chat_format = base.chat_format;
  language.video_format = base.video_format;
  language.eos_token_ids = base.eos_token_ids;
  VALORA_TRY(folder, InputFolder::open(language.folder));
  if (folder.has(kTokenizer)) {
    VALORA_TRY(own, text::Tokenizer::load(language.folder, base.tokenizer.get()));
    VALORA_CHECK(check_known_tokens(*own, *base.tokenizer, spec.path));
    language.tokenizer = std::move(own);
    VALORA_CHECK(read_eos(language));
  }
  if (!keeps_template) {
    VALORA_TRY(source, text::find_chat_template(language.folder));
    if (source) {
      VALORA_TRY(special_tokens, text::read_special_tokens(language.folder));
      VALORA_TRY(format, text::make_chat_template(
                             source->text, source->path,
                             {std::move(special_tokens), image_placeholder, video_placeholder}));
      language.chat_format = std::move(format);
    }
  }
  warn_of_tokens_without_embedding(language);
  return language;
}

}  // namespace valora::serving
