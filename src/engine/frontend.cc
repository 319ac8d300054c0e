#include "engine/frontend.h"

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "text/chat_template.h"

namespace valora {
namespace {

Result<Json> read_optional_json(const std::string& file) {
  if (!file_exists(file)) return Json(nullptr);
  return read_json_file(file);
}

struct ProcessorSettings {
  Json image, video;
};

// From separate files, or from processor_config.json, as transformers 5 writes them.
Result<ProcessorSettings> read_processor_settings(const std::string& dir) {
  VALORA_TRY(image, read_optional_json(dir + "/preprocessor_config.json"));
  VALORA_TRY(video, read_optional_json(dir + "/video_preprocessor_config.json"));
  VALORA_TRY(both, read_optional_json(dir + "/processor_config.json"));
  if (both.is_object() && image.is_null()) image = both.value("image_processor", Json());
  if (both.is_object() && video.is_null()) video = both.value("video_processor", Json());
  if (image.is_null())
    return not_found(
        dir +
            " has no preprocessor_config.json and no \"image_processor\" in processor_config.json",
        dir);
  return ProcessorSettings{std::move(image), std::move(video)};
}

Result<std::unique_ptr<media::Loader>> make_loader(const EngineOptions& options,
                                                   const models::Family& family,
                                                   const models::ConfigReader& config,
                                                   int max_tokens) {
  if (!family.processor) return std::unique_ptr<media::Loader>();
  VALORA_TRY(settings, read_processor_settings(options.model_path));
  VALORA_TRY(processor, family.processor(config, settings.image, settings.video));
  media::Limits limits;
  limits.max_visual_tokens = std::min(limits.max_visual_tokens, max_tokens);
  const media::FetchPolicy policy{.allowed_local_path = options.fetch.allowed_local_path,
                                  .allow_http = options.fetch.allow_http,
                                  .allowed_hosts = options.fetch.allowed_hosts};
  return std::make_unique<media::Loader>(processor, policy, limits, options.media_cache_bytes);
}

// The template of the options, else that of the folder, else the family's built-in format.
Result<std::unique_ptr<text::ChatFormat>> make_chat_format(const EngineOptions& options,
                                                           const models::Family& family,
                                                           const text::Tokenizer& tokenizer) {
  std::optional<text::ChatTemplateSource> source;
  if (options.chat_template.empty()) {
    VALORA_TRY(found, text::find_chat_template(options.model_path));
    source = std::move(found);
  } else {
    VALORA_TRY(given, text::read_chat_template(options.chat_template));
    source = std::move(given);
  }
  if (!source) return family.chat_format(tokenizer);
  VALORA_TRY(special_tokens, text::read_special_tokens(options.model_path));
  return text::make_chat_template(
      source->text, source->path,
      {std::move(special_tokens), family.image_placeholder, family.video_placeholder});
}

// An upper bound of the bytes of a text with `tokens` tokens, so that a far too long text is
// refused before it is tokenized. It assumes that the tokenizer does not shorten the text much (by
// normalization or stripped white space).
size_t most_bytes(const text::Tokenizer& tokenizer, int tokens) {
  size_t longest = 16;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    longest = std::max(longest, tokenizer.token_bytes(id).size());
  return longest * static_cast<size_t>(tokens);
}

text::ChatPart::Kind part_kind(MediaRef::Kind kind) {
  return kind == MediaRef::Kind::kImage ? text::ChatPart::Kind::kImage
                                        : text::ChatPart::Kind::kVideo;
}

bool has_media(const ChatPrompt& chat, MediaRef::Kind kind) {
  for (const ChatMessage& message : chat.messages)
    for (const ContentPart& part : message.parts)
      if (const auto* media = std::get_if<MediaRef>(&part); media && media->kind == kind)
        return true;
  return false;
}

// The conversation with one placeholder part per media item; appends the items to `media`.
std::vector<text::ChatMessage> split_media(const ChatPrompt& chat, std::vector<MediaRef>& media) {
  std::vector<text::ChatMessage> messages;
  for (const ChatMessage& message : chat.messages) {
    text::ChatMessage out{message.role, {}};
    for (const ContentPart& part : message.parts) {
      if (const auto* text = std::get_if<std::string>(&part)) {
        out.parts.push_back({text::ChatPart::Kind::kText, *text});
      } else {
        media.push_back(std::get<MediaRef>(part));
        out.parts.push_back({part_kind(media.back().kind), {}});
      }
    }
    messages.push_back(std::move(out));
  }
  return messages;
}

}  // namespace

Digest identity_of(std::span<const AppliedAdapter> adapters) {
  return digest_of(adapters, [](const AppliedAdapter& use) { return use.adapter->has_weights; });
}

std::vector<memory::AdapterNeed> needs_of(std::span<const AppliedAdapter> adapters) {
  std::vector<memory::AdapterNeed> needs;
  for (const AppliedAdapter& use : adapters)
    if (use.adapter->need.blocks > 0 &&
        std::ranges::find(needs, use.adapter->digest, &memory::AdapterNeed::digest) == needs.end())
      needs.push_back(use.adapter->need);
  return needs;
}

Digest salted(const Digest& identity, const std::string& cache_salt) {
  if (cache_salt.empty()) return identity;
  return DigestBuilder().add(identity).add(std::string_view(cache_salt)).finish();
}

Result<std::unique_ptr<Frontend>> Frontend::open(const EngineOptions& options,
                                                 const models::Family& family,
                                                 const models::ModelSpec& spec) {
  auto frontend = std::make_unique<Frontend>();
  frontend->family_ = &family;
  frontend->spec_ = &spec;
  frontend->media_limits_ = options.media_limits;
  VALORA_TRY(tokenizer, text::Tokenizer::load(options.model_path));
  if (tokenizer->vocab_size() > spec.vocab)
    return unprocessable(options.model_path + "/tokenizer.json has ids up to " +
                             std::to_string(tokenizer->vocab_size() - 1) +
                             ", but the model's vocabulary ends at " +
                             std::to_string(spec.vocab - 1),
                         options.model_path);
  frontend->tokenizer_ = tokenizer;
  VALORA_TRY(config, models::read_model_config(options.model_path));
  VALORA_TRY(generation,
             read_generation_config(options.model_path, config.json(), family.default_eos));
  frontend->generation_ = std::move(generation);
  VALORA_TRY(chat_format, make_chat_format(options, family, *tokenizer));
  frontend->chat_format_ = std::move(chat_format);
  frontend->max_tokens_ = options.max_model_len.value_or(static_cast<int>(spec.max_positions));
  frontend->around_ = tokenizer->encode("", /*add_special_tokens=*/true);
  VALORA_CHECK(frontend->check_placeholders());
  frontend->max_text_bytes_ = most_bytes(*tokenizer, frontend->max_tokens_);
  VALORA_TRY(loader, make_loader(options, family, config, frontend->max_tokens_));
  frontend->loader_ = std::move(loader);
  return frontend;
}

Status Frontend::check(const Prompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    if (ids->empty()) return invalid("the prompt is empty", "prompt");
    for (const int32_t id : *ids)
      if (id < 0 || id >= spec_->vocab)
        return invalid("token id " + std::to_string(id) + " is outside the vocabulary of " +
                           std::to_string(spec_->vocab),
                       "prompt");
    return {};
  }
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (!chat) return {};
  if (chat->messages.empty()) return invalid("\"messages\" is empty", "messages");
  if (!spec_->image_token && has_media(*chat, MediaRef::Kind::kImage))
    return invalid("this model takes no images", "messages");
  if (!spec_->video_token && has_media(*chat, MediaRef::Kind::kVideo))
    return invalid("this model takes no videos", "messages");
  return check_media(*chat, media_limits_);
}

Result<Frontend::Rendered> Frontend::render(const Prompt& prompt,
                                            bool add_generation_prompt) const {
  Rendered rendered;
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    VALORA_CHECK(check_text(*text, rendered.field));
    rendered.tokens = tokenizer_->encode(*text, /*add_special_tokens=*/true);
  } else if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    rendered.tokens = *ids;
  } else {
    rendered.field = "messages";
    const auto& chat = std::get<ChatPrompt>(prompt);
    VALORA_TRY(text,
               chat_format_->render(split_media(chat, rendered.media),
                                    chat.add_generation_prompt.value_or(add_generation_prompt),
                                    chat.template_variables));
    VALORA_CHECK(check_text(text, rendered.field));
    rendered.tokens = encode_chat(text);
  }
  if (rendered.tokens.empty()) return invalid("the prompt is empty", "prompt");
  return rendered;
}

std::vector<int32_t> Frontend::encode_chat(const std::string& text) const {
  const bool has_bos =
      around_.empty() || text.starts_with(tokenizer_->token_bytes(around_.front()));
  return tokenizer_->encode(text, /*add_special_tokens=*/family_->chat_adds_bos && !has_bos);
}

// The placeholder ids of config.json and the placeholder texts of tokenizer.json must match.
Status Frontend::check_placeholders() const {
  const auto check = [&](const std::optional<int32_t>& token,
                         const std::string& placeholder) -> Status {
    if (!token) return {};
    const std::vector<int32_t> ids = tokenizer_->encode(placeholder, /*add_special_tokens=*/false);
    if (std::find(ids.begin(), ids.end(), *token) != ids.end()) return {};
    return unprocessable("tokenizer.json does not encode " + placeholder +
                             " with the placeholder token " + std::to_string(*token) +
                             " of config.json",
                         "tokenizer.json");
  };
  VALORA_CHECK(check(spec_->image_token, family_->image_placeholder));
  return check(spec_->video_token, family_->video_placeholder);
}

// Checked before further media are fetched and decoded.
Status Frontend::check_length(size_t tokens, const char* field) const {
  if (tokens <= static_cast<size_t>(max_tokens_)) return {};
  return invalid("This model's maximum context length is " + std::to_string(max_tokens_) +
                     " tokens. However, the prompt has at least " + std::to_string(tokens) +
                     ". Please reduce the length of the prompt.",
                 field);
}

Status Frontend::check_text(const std::string& text, const char* field) const {
  if (text.size() <= max_text_bytes_) return {};
  return invalid("This model's maximum context length is " + std::to_string(max_tokens_) +
                     " tokens. However, the prompt has " + std::to_string(text.size()) +
                     " bytes, which is more than that. Please reduce the length of the prompt.",
                 field);
}

// Replaces each placeholder by the visual tokens of its image or video.
Result<PreparedPrompt> Frontend::expand(Rendered rendered) const {
  PreparedPrompt prepared;
  size_t next = 0;
  VALORA_CHECK(check_length(rendered.tokens.size(), rendered.field));
  for (const int32_t token : rendered.tokens) {
    const bool image = spec_->image_token && token == *spec_->image_token;
    const bool video = spec_->video_token && token == *spec_->video_token;
    if (!image && !video) {
      prepared.tokens.push_back(token);
      continue;
    }
    const auto kind = image ? MediaRef::Kind::kImage : MediaRef::Kind::kVideo;
    if (next == rendered.media.size() || rendered.media[next].kind != kind)
      return invalid(
          "the prompt's text contains an image or video placeholder; send media as "
          "image_url or video_url parts",
          "messages");
    const MediaRef& ref = rendered.media[next++];
    VALORA_TRY(input,
               loader_->load(ref.url, image ? media::MediaKind::kImage : media::MediaKind::kVideo));
    VALORA_CHECK(check_length(prepared.tokens.size() + input->tokens, rendered.field));
    const int begin = static_cast<int>(prepared.tokens.size());
    prepared.tokens.insert(prepared.tokens.end(), input->tokens, token);
    prepared.visual.push_back({begin, input});
    prepared.identity.media.push_back({begin, input->tokens, input->digest});
  }
  if (next != rendered.media.size())
    return invalid("the model's chat template leaves out an image or video of this conversation",
                   "messages");
  return prepared;
}

Result<PreparedPrompt> Frontend::prepare(const Prompt& prompt, bool add_generation_prompt,
                                         std::span<const AppliedAdapter> adapters) const {
  VALORA_TRY(rendered, render(prompt, add_generation_prompt));
  VALORA_TRY(prepared, expand(std::move(rendered)));
  prepared.identity.adapter = identity_of(adapters);
  prepared.identity.adapters = needs_of(adapters);
  prepared.positions =
      family_->positions(*spec_, static_cast<int>(prepared.tokens.size()), prepared.visual);
  return prepared;
}

Result<std::vector<int32_t>> Frontend::tokenize(const Prompt& prompt,
                                                bool add_special_tokens) const {
  VALORA_CHECK(check(prompt));
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    VALORA_CHECK(check_text(*text, "prompt"));
    return tokenizer_->encode(*text, add_special_tokens);
  }
  VALORA_TRY(rendered, render(prompt, true));
  return std::move(rendered.tokens);
}

}  // namespace valora
