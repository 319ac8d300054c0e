#include "serving/prompts/frontend.h"

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "models/spec/load_error.h"
#include "serving/prompts/chat_media.h"
#include "serving/prompts/media_text.h"
#include "serving/prompts/prompt_tokens.h"
#include "text/chat_template.h"

namespace valora::serving {
namespace {

Result<Json> read_optional_json(const std::string& file) {
  if (!file_exists(file)) return Json(nullptr);
  return read_json_file(file);
}

// From separate files, or from processor_config.json, as transformers 5 writes them.
Result<media::ProcessorFiles> read_processor_files(const std::string& dir) {
  VALORA_TRY(image, read_optional_json(dir + "/preprocessor_config.json"));
  VALORA_TRY(video, read_optional_json(dir + "/video_preprocessor_config.json"));
  VALORA_TRY(both, read_optional_json(dir + "/processor_config.json"));
  // As in transformers 5, the newer file wins.
  const auto nested = [&](const char* key, Json& settings) {
    if (both.is_object() && both.contains(key) && both[key].is_object()) settings = both[key];
  };
  nested("image_processor", image);
  nested("video_processor", video);
  if (image.is_null())
    return not_found(
        dir +
            " has no preprocessor_config.json and no \"image_processor\" in processor_config.json",
        dir);
  return media::ProcessorFiles{std::move(image), std::move(video), std::move(both)};
}

Result<std::unique_ptr<media::Loader>> make_loader(const EngineOptions& options,
                                                   const models::Family& family,
                                                   const models::ConfigReader& config) {
  if (!family.processor) return std::unique_ptr<media::Loader>();
  media::ProcessorFiles files;
  if (!family.settings_in_config) {
    VALORA_TRY(read, read_processor_files(options.model_path));
    files = std::move(read);
  }
  VALORA_TRY(processor, family.processor(config, files));
  const media::FetchPolicy policy{.allowed_local_path = options.fetch.allowed_local_path,
                                  .allow_http = options.fetch.allow_http,
                                  .allowed_hosts = options.fetch.allowed_hosts,
                                  .private_addresses = options.fetch.private_addresses,
                                  .use_proxy = options.fetch.use_proxy};
  return std::make_unique<media::Loader>(processor, policy, media::Limits(),
                                         options.media_cache_bytes);
}

// The template of the options, else that of the folder, else the family's built-in format.
Result<std::unique_ptr<text::ChatFormat>> make_chat_format(const EngineOptions& options,
                                                           const models::Family& family,
                                                           const text::Tokenizer& tokenizer,
                                                           const models::ConfigReader& config) {
  std::optional<text::ChatTemplateSource> source;
  if (options.chat_template.empty()) {
    VALORA_TRY(found, text::find_chat_template(options.model_path));
    source = std::move(found);
  } else {
    VALORA_TRY(given, text::read_chat_template(options.chat_template));
    source = std::move(given);
  }
  if (!source) {
    try {
      return family.chat_format(tokenizer, config);
    } catch (const models::LoadError& e) {
      return e.error();
    }
  }
  VALORA_TRY(special_tokens, text::read_special_tokens(options.model_path));
  return text::make_chat_template(
      source->text, source->path,
      {std::move(special_tokens), family.image_placeholder, family.video_placeholder});
}

// At least the bytes of each token, so that a far too long text is refused before it is tokenized.
// It assumes that the tokenizer does not shorten the text much (by normalization or stripped white
// space).
size_t longest_token(const text::Tokenizer& tokenizer) {
  size_t longest = 16;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    longest = std::max(longest, tokenizer.token_bytes(id).size());
  return longest;
}

}  // namespace

Digest salted(const Digest& identity, const std::string& cache_salt) {
  if (cache_salt.empty()) return identity;
  return DigestBuilder().add(identity).add(std::string_view(cache_salt)).finish();
}

Result<std::unique_ptr<Frontend>> Frontend::open(const EngineOptions& options,
                                                 const models::Family& family,
                                                 models::ModelSpec spec) {
  auto frontend = std::make_unique<Frontend>();
  frontend->family_ = &family;
  frontend->spec_ = std::move(spec);
  frontend->media_limits_ = options.media_limits;
  frontend->media_defaults_ = options.media_defaults;
  frontend->model_path_ = options.model_path;
  VALORA_TRY(tokenizer, text::Tokenizer::load(options.model_path));
  frontend->tokenizer_ = tokenizer;
  VALORA_TRY(config, models::read_model_config(options.model_path));
  const auto end =
      family.end_of_turn.empty() ? std::nullopt : tokenizer->token_to_id(family.end_of_turn);
  const auto of_class =
      frontend->spec_.default_eos ? frontend->spec_.default_eos : family.default_eos;
  VALORA_TRY(generation,
             read_generation_config(options.model_path, config.json(), end ? end : of_class,
                                    options.generation_overrides));
  frontend->generation_ = std::move(generation);
  std::vector<int32_t>& ends = frontend->generation_.eos_token_ids;
  if (end && std::ranges::find(ends, *end) == ends.end()) ends.push_back(*end);
  VALORA_TRY(chat_format, make_chat_format(options, family, *tokenizer, config));
  frontend->chat_format_ = std::move(chat_format);
  if (family.videos_alone && options.chat_template.empty())
    frontend->video_format_ = family.chat_format(*tokenizer, config);
  VALORA_CHECK(frontend->name_placeholders());
  std::vector<int32_t> placeholders;
  for (const auto& token : {frontend->spec_.image_token, frontend->spec_.video_token})
    if (token) placeholders.push_back(static_cast<int32_t>(*token));
  if (!family.image_text.empty())
    for (const int32_t token : tokenizer->encode(family.image_text, /*add_special_tokens=*/false))
      if (tokenizer->is_added(token)) placeholders.push_back(token);
  frontend->content_marks_ = std::make_unique<text::ContentMarks>(*tokenizer, placeholders);
  frontend->around_ = tokenizer->encode("", /*add_special_tokens=*/true);
  VALORA_CHECK(check_vocabulary(*tokenizer, frontend->spec_.vocab, options.model_path));
  VALORA_CHECK(frontend->check_placeholders());
  if (family.media_text)
    VALORA_CHECK(check_media_text(family, *tokenizer, *frontend->spec_.image_token));
  frontend->longest_token_ = longest_token(*tokenizer);
  VALORA_TRY(loader, make_loader(options, family, config));
  frontend->loader_ = std::move(loader);
  frontend->limit_tokens(static_cast<int>(frontend->spec_.max_positions));
  VALORA_CHECK(frontend->check_media_defaults());
  return frontend;
}

void Frontend::limit_tokens(int max_tokens) {
  max_tokens_ = max_tokens;
  max_text_bytes_ = longest_token_ * static_cast<size_t>(max_tokens);
  if (loader_) loader_->limit_tokens(max_tokens);
}

Result<RenderedPrompt> Frontend::render(Prompt prompt, bool add_generation_prompt) const {
  RenderedPrompt rendered;
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    VALORA_CHECK(check_text(text->size(), rendered.field));
    rendered.tokens = tokenizer_->encode(*text, /*add_special_tokens=*/true);
  } else if (auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    rendered.tokens = std::move(*ids);
  } else {
    rendered.field = "messages";
    VALORA_CHECK(
        render_chat(std::move(std::get<ChatPrompt>(prompt)), add_generation_prompt, rendered));
  }
  if (rendered.tokens.empty()) return invalid("the prompt is empty", "prompt");
  return rendered;
}

Result<std::vector<int32_t>> Frontend::tokenize(const Prompt& prompt,
                                                bool add_special_tokens) const {
  VALORA_CHECK(check(prompt));
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    VALORA_CHECK(check_text(text->size(), "prompt"));
    return tokenizer_->encode(*text, add_special_tokens);
  }
  VALORA_TRY(rendered, render(prompt, true));
  return std::move(rendered.tokens);
}

}  // namespace valora::serving
