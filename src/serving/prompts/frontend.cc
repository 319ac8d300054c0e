#include "serving/prompts/frontend.h"

#include <algorithm>

#include "base/files/file.h"
#include "base/json/json.h"
#include "models/spec/gguf_model.h"
#include "models/spec/gguf_vision.h"
#include "models/spec/load_error.h"
#include "serving/prompts/chat_media.h"
#include "serving/prompts/media_text.h"
#include "serving/prompts/prompt_tokens.h"
#include "serving/prompts/retrieval_recipe.h"
#include "text/chat/chat_template.h"

namespace valora::serving {
namespace {

Result<Json> read_optional_json(const std::string& file) {
  if (!file_exists(file)) return Json(nullptr);
  return read_json_file(file);
}

// Reads separate files, or processor_config.json as written by transformers 5.
Result<media::ProcessorFiles> read_processor_files(const std::string& dir) {
  VALORA_TRY(image, read_optional_json(dir + "/preprocessor_config.json"));
  VALORA_TRY(video, read_optional_json(dir + "/video_preprocessor_config.json"));
  VALORA_TRY(both, read_optional_json(dir + "/processor_config.json"));
  // As in transformers 5, the newer file takes precedence.
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
                                                   const models::ConfigReader& config,
                                                   const std::optional<models::GgufModel>& gguf) {
  if (!family.processor) return std::unique_ptr<media::Loader>();
  media::ProcessorFiles files;
  if (gguf) {
    VALORA_TRY(image, models::gguf_image_processor(*gguf, config.json()));
    files.image = std::move(image);
    files.video = models::gguf_video_processor(config.json(), files.image);
  } else if (!family.settings_in_config) {
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

// The template from the options, else from the folder, else the family's built-in format.
// That of the options, else the folder's; absent: none.
Result<std::optional<text::ChatTemplateSource>> template_of(const EngineOptions& options) {
  if (options.chat_template.empty()) return text::find_chat_template(options.model_path);
  VALORA_TRY(given, text::read_chat_template(options.chat_template));
  return std::optional(std::move(given));
}

Result<std::unique_ptr<text::ChatFormat>> make_chat_format(
    const EngineOptions& options, const std::optional<text::ChatTemplateSource>& source,
    const models::Family& family, const text::Tokenizer& tokenizer,
    const models::ConfigReader& config) {
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
  frontend->template_given_ = !options.chat_template.empty();
  frontend->form_limits_ = options.form_limits;
  frontend->reasoning_parser_ = options.reasoning_parser;
  Language& base = frontend->base_;
  base.folder = FolderPath(options.model_path);
  base.vocab = frontend->spec_.vocab;
  VALORA_TRY(gguf, models::open_gguf_model({options.model_path, options.mmproj}));
  VALORA_TRY(config, models::read_model_config({options.model_path, options.mmproj}));
  VALORA_TRY(tokenizer, text::Tokenizer::load(options.model_path, nullptr,
                                              config.text(models::kAddedToken, "")));
  base.tokenizer = tokenizer;
  if (gguf && !gguf->vision)
    frontend->no_images_ += "; " + gguf->language->path() +
                            " holds text alone: start with --mmproj FILE, if there is a file with "
                            "its vision part";
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
  base.eos_token_ids = ends;
  VALORA_TRY(source, template_of(options));
  VALORA_TRY(chat_format, make_chat_format(options, source, family, *tokenizer, config));
  base.chat_format = std::move(chat_format);
  if (family.excludes_mixed_media && options.chat_template.empty())
    base.video_format = family.chat_format(*tokenizer, config);
  VALORA_CHECK(frontend->name_placeholders());
  VALORA_CHECK(finish_language(base, frontend->placeholders(), options.form_limits,
                               options.reasoning_parser));
  VALORA_CHECK(frontend->read_template_defaults(options.template_variables));
  VALORA_CHECK(frontend->check_placeholders(*tokenizer));
  if (family.media_text)
    VALORA_CHECK(check_media_text(family, *tokenizer, *frontend->spec_.image_token));
  VALORA_TRY(loader, make_loader(options, family, config, gguf));
  frontend->loader_ = std::move(loader);
  auto retrieval =
      read_retrieval(options.model_path, *tokenizer,
                     {source ? source->text : std::string(), !options.chat_template.empty()},
                     frontend->spec_.hidden);
  // Such files concern these answers alone, so the model is served without them.
  if (retrieval.ok())
    frontend->retrieval_ = std::move(*retrieval);
  else
    frontend->retrieval_.embedding.refusal = retrieval.error().message;
  frontend->limit_tokens(static_cast<int>(frontend->spec_.max_positions));
  VALORA_CHECK(frontend->check_media_defaults());
  return frontend;
}

void Frontend::limit_tokens(int max_tokens) {
  max_tokens_ = max_tokens;
  if (loader_) loader_->limit_tokens(max_tokens);
}

std::vector<int32_t> Frontend::placeholders() const {
  std::vector<int32_t> placeholders;
  for (const auto& token : {spec_.image_token, spec_.video_token})
    if (token) placeholders.push_back(static_cast<int32_t>(*token));
  const text::Tokenizer& tokenizer = *base_.tokenizer;
  if (!family_->image_text.empty())
    for (const int32_t token : tokenizer.encode(family_->image_text, /*add_special_tokens=*/false))
      if (tokenizer.is_added(token)) placeholders.push_back(token);
  return placeholders;
}

const Language& Frontend::language_of(std::span<const AppliedAdapter> adapters) const {
  for (const AppliedAdapter& use : adapters)
    if (use.adapter->language) return *use.adapter->language;
  return base_;
}

Result<std::shared_ptr<const Language>> Frontend::own_language(
    const adapters::AdapterSpec& spec) const {
  VALORA_TRY(needed, needs_language(spec, base_));
  if (!needed) return std::shared_ptr<const Language>();
  VALORA_TRY(content, digest_of_language(spec));
  {
    const std::lock_guard lock(languages_mutex_);
    std::erase_if(languages_, [](const auto& entry) { return entry.second.expired(); });
    if (const auto it = languages_.find(content); it != languages_.end())
      if (auto known = it->second.lock()) return known;
  }
  VALORA_TRY(language, read_language(spec, base_, template_given_, family_->image_placeholder,
                                     family_->video_placeholder));
  VALORA_CHECK(check_placeholders(*language.tokenizer));
  for (const int32_t token : placeholders())
    if (token < base_.vocab && token >= language.vocab)
      return unprocessable(spec.path + " has embeddings of " + std::to_string(language.vocab) +
                           " tokens, and the placeholder of media is token " +
                           std::to_string(token));
  VALORA_CHECK(finish_language(language, placeholders(), form_limits_, reasoning_parser_));
  const auto made = std::make_shared<const Language>(std::move(language));
  const std::lock_guard lock(languages_mutex_);
  // Another thread may have read the same one meanwhile: adapters share one.
  if (auto known = languages_[content].lock()) return known;
  languages_[content] = made;
  return made;
}

Result<RenderedPrompt> Frontend::render(Prompt prompt, bool add_generation_prompt,
                                        const Language& language) const {
  RenderedPrompt rendered;
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    VALORA_CHECK(check_text(text->size(), rendered.field, language));
    rendered.tokens = language.tokenizer->encode(*text, /*add_special_tokens=*/true);
  } else if (auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    rendered.tokens = std::move(*ids);
  } else {
    rendered.field = "messages";
    VALORA_CHECK(render_chat(std::move(std::get<ChatPrompt>(prompt)), add_generation_prompt,
                             language, rendered));
  }
  if (rendered.tokens.empty()) return invalid("the prompt is empty", "prompt");
  return rendered;
}

Result<std::vector<int32_t>> Frontend::tokenize(const Prompt& prompt, bool add_special_tokens,
                                                std::span<const AppliedAdapter> adapters) const {
  const Language& language = language_of(adapters);
  VALORA_CHECK(check(prompt, adapters));
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    VALORA_CHECK(check_text(text->size(), "prompt", language));
    return language.tokenizer->encode(*text, add_special_tokens);
  }
  VALORA_TRY(rendered, render(prompt, true, language));
  return std::move(rendered.tokens);
}

}  // namespace valora::serving
