// The part of the frontend that inserts media into a rendered prompt.
#include <fmt/format.h>

#include "base/video.h"
#include "serving/prompts/chat_media.h"
#include "serving/prompts/frontend.h"
#include "serving/prompts/media_choice.h"
#include "serving/prompts/media_text.h"
#include "serving/prompts/prompt_tokens.h"
#include "serving/prompts/video_tokens.h"
#include "serving/prompts/visual_parts.h"

namespace valora::serving {
namespace {

// Prefixes an error with the request's field.
Error in_field(const Error& error, const std::string& field) {
  return {error.code, fmt::format("\"{}\": {}", field, error.message), field};
}

// True if the part has settings of its own, other than a rate from the request's list.
bool has_own(const MediaRef& ref) {
  MediaSettings settings = ref.settings;
  settings.fps.reset();
  return settings != MediaSettings{};
}

constexpr const char* kProcessorKwargs = "mm_processor_kwargs";

// The request's field that these settings come from.
const char* field_of(MediaSettings request) {
  const bool loader = request.loader.has_value();
  request.loader.reset();
  return loader && request == MediaSettings{} ? "media_io_kwargs" : kProcessorKwargs;
}

}  // namespace

Status Frontend::check_length(size_t tokens, const char* field) const {
  if (tokens <= static_cast<size_t>(max_tokens_)) return {};
  return invalid("This model's maximum context length is " + std::to_string(max_tokens_) +
                     " tokens. However, the prompt has at least " + std::to_string(tokens) +
                     ". Please reduce the length of the prompt.",
                 field);
}

bool Frontend::is_placeholder(int32_t token) const {
  return token == spec_.image_token || token == spec_.video_token;
}

std::optional<int32_t> Frontend::placeholder_of(MediaRef::Kind kind) const {
  return kind == MediaRef::Kind::kImage ? spec_.image_token : spec_.video_token;
}

// Placeholders and media must match, in the same order.
Status Frontend::match_media(const RenderedPrompt& rendered) const {
  size_t next = 0;
  for (const int32_t token : rendered.tokens) {
    if (!is_placeholder(token)) continue;
    if (next == rendered.media.size() || placeholder_of(rendered.media[next].ref.kind) != token)
      return invalid(
          "the prompt's text contains an image or video placeholder; send media as "
          "image_url or video_url parts",
          "messages");
    ++next;
  }
  if (next != rendered.media.size())
    return invalid("the model's chat template leaves out an image or video of this conversation",
                   "messages");
  return {};
}

Status Frontend::truncate(RenderedPrompt& rendered, int keep) const {
  static const std::string kParam = "truncate_prompt_tokens";
  if (keep > max_tokens_)
    return invalid("\"" + kParam + "\" must be at most " + std::to_string(max_tokens_) +
                       ", the model's maximum context length",
                   kParam);
  const auto most = static_cast<size_t>(keep < 0 ? max_tokens_ : keep);
  if (rendered.tokens.size() <= most) return {};
  if (!rendered.media.empty())
    return invalid("\"" + kParam + "\": a prompt with images or videos cannot be cut", kParam);
  rendered.tokens.erase(rendered.tokens.begin(), rendered.tokens.end() - static_cast<long>(most));
  return {};
}

Result<RenderedPrompt> Frontend::begin(Prompt prompt, bool add_generation_prompt,
                                       std::span<const AppliedAdapter> adapters,
                                       std::optional<int> keep) const {
  const Language& language = language_of(adapters);
  VALORA_TRY(rendered, render(std::move(prompt), add_generation_prompt, language));
  if (keep) VALORA_CHECK(truncate(rendered, *keep));
  VALORA_CHECK(check_length(rendered.tokens.size(), rendered.field));
  std::vector<int32_t> replaced;
  for (const auto& token : {spec_.image_token, spec_.video_token})
    if (token) replaced.push_back(*token);
  VALORA_CHECK(
      check_tokens(rendered.tokens, *language.tokenizer, language.vocab, rendered.field, replaced));
  VALORA_CHECK(match_media(rendered));
  return rendered;
}

// Called before more media are fetched and decoded.
Status Frontend::check_loaded(const RenderedPrompt& rendered) const {
  size_t tokens = rendered.tokens.size();
  for (const RenderedPrompt::Item& item : rendered.media)
    if (item.input) tokens += static_cast<size_t>(item.input->tokens) - 1;
  return check_length(tokens, rendered.field);
}

// Replaces each placeholder by the visual tokens of its image or video.
Result<PreparedPrompt> Frontend::finish(RenderedPrompt rendered,
                                        std::span<const AppliedAdapter> adapters) const {
  const Language& language = language_of(adapters);
  const text::Tokenizer& tokenizer = *language.tokenizer;
  PreparedPrompt prepared;
  prepared.thought = rendered.thought;
  std::vector<int32_t>& tokens = prepared.tokens;
  const std::vector<int32_t>& text = rendered.tokens;
  size_t next = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_placeholder(text[i])) {
      tokens.push_back(text[i]);
      continue;
    }
    const auto& input = rendered.media[next++].input;
    if (spec_.frame_marks && input->kind == media::MediaKind::kVideo) {
      // The frames' marks replace those around the placeholder.
      if (i > 0 && text[i - 1] == spec_.frame_marks->begin && i + 1 < text.size() &&
          text[i + 1] == spec_.frame_marks->end) {
        tokens.pop_back();
        ++i;
      }
      VALORA_CHECK(append_video({*spec_.video_token, *spec_.frame_marks, input}, tokenizer,
                                *language.content_marks, tokens, prepared.visual));
    } else if (family_->media_text) {
      const MediaText medium{*spec_.image_token, family_->media_text(*input), input};
      if (input->kind == media::MediaKind::kImage) {
        VALORA_CHECK(append_image(medium, tokenizer, tokens, prepared.visual));
      } else {
        size_t end = i + 1;
        while (end < text.size() && !tokenizer.is_added(text[end])) ++end;
        VALORA_CHECK(append_video_text(medium, std::span(text).subspan(i + 1, end - i - 1),
                                       tokenizer, *language.content_marks, tokens,
                                       prepared.visual));
        i = end - 1;
      }
    } else {
      prepared.visual.push_back({static_cast<int>(tokens.size()), input->tokens, input});
      tokens.insert(tokens.end(), static_cast<size_t>(input->tokens), text[i]);
    }
  }
  // Timestamps and separators were not counted before.
  VALORA_CHECK(check_length(tokens.size(), rendered.field));
  set_identity(adapters, prepared);
  return prepared;
}

// Sets everything that follows from the tokens and media spans.
void Frontend::set_identity(std::span<const AppliedAdapter> adapters,
                            PreparedPrompt& prepared) const {
  if (spec_.joint_tokens > 0)
    for (const models::VisualSpan& span : prepared.visual)
      prepared.joint.push_back({span.token_begin, span.token_begin + span.rows});
  prepared.acts_from = acts_from(adapters, prepared.tokens);
  if (prepared.acts_from == 0) prepared.identity.adapter = identity_of(adapters);
  if (prepared.acts_from > 0 && prepared.acts_from != kNever) {
    prepared.identity.late = identity_of(adapters);
    prepared.identity.late_from = prepared.acts_from;
  }
  if (prepared.acts_from != kNever) prepared.identity.adapters = needs_of(adapters);
  prepared.positions =
      family_->positions(spec_, static_cast<int>(prepared.tokens.size()), prepared.visual);
  cut_spans(prepared.visual);
  prepared.identity.media = media_spans(prepared.visual);
  for (const models::VisualSpan& span : prepared.visual)
    prepared.visual_keys.push_back(visual_key(adapters, span.encoded()->digest));
  prepared.identity.rope = {spec_.rope_change.beyond,
                            spec_.rope_change.each,
                            static_cast<int>(prepared.tokens.size()),
                            models::length_of(prepared.positions.prompt),
                            prepared.positions.delta,
                            spec_.rope_change.of_prompt};
}

Result<PreparedPrompt> Frontend::prepare(Prompt prompt, bool add_generation_prompt,
                                         std::span<const AppliedAdapter> adapters,
                                         const std::stop_token& stop) const {
  const std::vector<std::string> paths = media_paths(prompt);
  VALORA_TRY(rendered, begin(std::move(prompt), add_generation_prompt, adapters));
  for (size_t i = 0; i < rendered.media.size(); ++i) {
    RenderedPrompt::Item& item = rendered.media[i];
    auto input = loader_->load(item.ref.url, media_kind(item.ref.kind), stop, item.processor);
    if (!input.ok()) return in_part(input.error(), paths[i]);
    item.input = std::move(input).value();
    VALORA_CHECK(check_loaded(rendered));
  }
  return finish(std::move(rendered), adapters);
}

Result<std::shared_ptr<const media::Processor>> Frontend::own_processor(
    const MediaRef& ref, const MediaSettings& request) const {
  const bool list = ref.kind == MediaRef::Kind::kVideo && is_frame_list(ref.url);
  const media::MediaKind kind = media_kind(ref.kind);
  VALORA_TRY(overrides, overrides_of(ref.settings, request, kind, list));
  // Only settings for the other kind of media.
  if (overrides == media::ProcessorOverrides{.kind = kind})
    return std::shared_ptr<const media::Processor>();
  return loader_->processor().with(overrides);
}

Result<Frontend::Processors> Frontend::own_processors(const ChatPrompt& chat) const {
  Processors processors;
  if (!loader_) return processors;
  const MediaSettings request = with_defaults(chat.media_settings, media_defaults_);
  const MediaSettings of_images = in_request(chat.image_settings, request);
  const MediaSettings of_videos = in_request(chat.video_settings, request);
  const bool several = count_media(chat, MediaRef::Kind::kImage) > 1;
  for (size_t m = 0; m < chat.messages.size(); ++m) {
    const std::vector<ContentPart>& parts = chat.messages[m].parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto* ref = std::get_if<MediaRef>(&parts[i]);
      if (ref == nullptr) continue;
      processors.emplace_back();
      const bool image = ref->kind == MediaRef::Kind::kImage;
      if (several && image) processors.back() = loader_->processor().of_several();
      const MediaSettings& of_kind = image ? of_images : of_videos;
      if (ref->settings == MediaSettings{} && of_kind == MediaSettings{}) continue;
      auto own = own_processor(*ref, of_kind);
      // A part's settings and the request's may be invalid in combination; the part is named.
      if (!own.ok() && has_own(*ref)) return in_field(own.error(), part_path(m, i));
      if (!own.ok() && own_processor(*ref, request).ok())
        return Error{own.error().code,
                     fmt::format("\"{}.{}_kwargs\": {}", kProcessorKwargs,
                                 image ? "images" : "videos", own.error().message),
                     kProcessorKwargs};
      if (!own.ok()) return in_field(own.error(), field_of(chat.media_settings));
      if (*own) processors.back() = std::move(own).value();
    }
  }
  return processors;
}

Status Frontend::check_media_defaults() const {
  if (!loader_ || media_defaults_ == MediaSettings{}) return {};
  for (const MediaRef::Kind kind : {MediaRef::Kind::kImage, MediaRef::Kind::kVideo}) {
    const bool taken =
        (kind == MediaRef::Kind::kImage ? spec_.image_token : spec_.video_token).has_value();
    if (!taken) continue;
    if (const auto own = own_processor({kind, {}}, media_defaults_); !own.ok())
      return in_field(own.error(), "--mm-processor-kwargs");
  }
  return {};
}

}  // namespace valora::serving
