// Converts a client's prompt into the scheduler's input: media, chat format, tokens, placeholders,
// positions, KV identity. Thread-safe after open() and limit_tokens(). Called from client threads
// and media workers, never from the engine thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "api/options.h"
#include "api/request.h"
#include "api/retrieval.h"
#include "base/position_range.h"
#include "media/fetch/loader.h"
#include "memory/identity.h"
#include "models/spec/family.h"
#include "serving/adapters/loaded_adapter.h"
#include "serving/prompts/language.h"
#include "serving/sampling/generation_config.h"
#include "text/chat/chat.h"
#include "text/tokenizer.h"

namespace valora::serving {

struct PreparedPrompt {
  std::vector<int32_t> tokens;
  models::Positions positions;
  std::vector<models::VisualSpan> visual;  // sorted by token_begin
  std::vector<Digest> visual_keys;   // keys of their embeddings (visual_key()), in the same order
  std::vector<PositionRange> joint;  // for QuerySpan
  memory::KvIdentity identity;
  text::ThoughtPlace thought = text::ThoughtPlace::kAnswer;  // where the answer begins
  int acts_from = 0;  // the first token the adapters apply to (serving::acts_from)
};

// A tokenized prompt with one placeholder per image or video, and the media in that order.
struct RenderedPrompt {
  struct Item {
    MediaRef ref;
    std::shared_ptr<const media::VisualInput> input;    // null until loaded
    std::shared_ptr<const media::Processor> processor;  // null: the loader's own
  };
  std::vector<int32_t> tokens;
  std::vector<Item> media;
  const char* field = "prompt";  // the request's field, for error messages
  text::ThoughtPlace thought = text::ThoughtPlace::kAnswer;  // where the answer begins
};

class Frontend {
 public:
  // Reads tokenizer, generation config, chat template and image processor from the model folder,
  // which need not contain the weights yet. A prompt and each of its images may have as many tokens
  // as the model has positions. `family` must outlive the frontend.
  static Result<std::unique_ptr<Frontend>> open(const EngineOptions& options,
                                                const models::Family& family,
                                                models::ModelSpec spec);
  // Limits the tokens of a prompt and of each image. Call before the first prompt.
  void limit_tokens(int max_tokens);

  // The language of requests with these adapters: the base model's, or the adapter's own, in which
  // case it is used alone. Lives as long as the adapters.
  const Language& language_of(std::span<const AppliedAdapter> adapters) const;
  // The language of an adapter with its own tokens; null: the base model's. Adapters whose folders
  // have the same files share it. Errors: those of needs_language() and read_language().
  Result<std::shared_ptr<const Language>> own_language(const adapters::AdapterSpec& spec) const;

  // Checks a prompt without loading its media: message parts, media limits, token ids.
  // kInvalidArgument names the field.
  Status check(const Prompt& prompt, std::span<const AppliedAdapter> adapters = {}) const;
  // Runs the whole preparation on the calling thread. kCancelled if a stop is requested.
  Result<PreparedPrompt> prepare(Prompt prompt, bool add_generation_prompt,
                                 std::span<const AppliedAdapter> adapters,
                                 const std::stop_token& stop = {}) const;

  // The steps of prepare(), for callers that load the media themselves: begin(); then all items'
  // inputs from loader(), each followed by check_loaded(); then finish(). Use the same adapters in
  // all. keep: GenerateRequest::truncate_prompt_tokens.
  Result<RenderedPrompt> begin(Prompt prompt, bool add_generation_prompt,
                               std::span<const AppliedAdapter> adapters,
                               std::optional<int> keep = {}) const;
  Status check_loaded(const RenderedPrompt& rendered) const;
  Result<PreparedPrompt> finish(RenderedPrompt rendered,
                                std::span<const AppliedAdapter> adapters) const;
  media::Loader* loader() const { return loader_.get(); }  // null for text-only models
  // Processors of a conversation's media, in order; null: the loader's own.
  using Processors = std::vector<std::shared_ptr<const media::Processor>>;
  Result<Processors> own_processors(const ChatPrompt& chat) const;

  // The base model's.
  const std::shared_ptr<const text::Tokenizer>& tokenizer() const { return base_.tokenizer; }
  const text::ChatFormat& chat_format() const { return *base_.chat_format; }
  const models::ModelSpec& spec() const { return spec_; }
  // How the model writes boxes without an adapter; absent: it was not trained to.
  const std::optional<BoxNotation>& boxes() const { return family_->boxes; }
  const RetrievalCard& retrieval() const { return retrieval_; }
  const GenerationConfig& generation() const { return generation_; }
  media::LoaderStats media_stats() const {
    return loader_ ? loader_->stats() : media::LoaderStats{};
  }
  // The token ids of a text, or of a conversation with one placeholder per image or video. Loads no
  // media.
  Result<std::vector<int32_t>> tokenize(const Prompt& prompt, bool add_special_tokens,
                                        std::span<const AppliedAdapter> adapters = {}) const;

 private:
  Result<RenderedPrompt> render(Prompt prompt, bool add_generation_prompt,
                                const Language& language) const;
  Status render_chat(ChatPrompt chat, bool add_generation_prompt, const Language& language,
                     RenderedPrompt& rendered) const;
  // The format of the prompt's own template; null if it has none.
  Result<std::unique_ptr<text::ChatFormat>> own_format(const ChatPrompt& chat,
                                                       const Language& language) const;
  Result<std::shared_ptr<const media::Processor>> own_processor(const MediaRef& ref,
                                                                const MediaSettings& request) const;
  // mark: see Tokenizer::encode().
  std::vector<int32_t> encode_chat(const std::string& text, const std::string& mark,
                                   bool add_special_tokens, const Language& language) const;
  bool is_placeholder(int32_t token) const;
  std::optional<int32_t> placeholder_of(MediaRef::Kind kind) const;
  Status match_media(const RenderedPrompt& rendered) const;
  void set_identity(std::span<const AppliedAdapter> adapters, PreparedPrompt& prepared) const;
  Status truncate(RenderedPrompt& rendered, int keep) const;
  Status check_length(size_t tokens, const char* field) const;
  Status check_text(size_t bytes, const char* field, const Language& language) const;
  // Looks up placeholders that the spec gives by name only.
  Status name_placeholders();
  Status check_placeholders(const text::Tokenizer& tokenizer) const;
  std::vector<int32_t> placeholders() const;
  // The text of an image in a rendered conversation: Family::image_text, or the placeholder.
  const std::string& image_text() const;
  Status check_media_defaults() const;
  Status read_template_defaults(const std::string& text);
  // The variables of a conversation, with those that the options and the request's hints set.
  Json variables_of(const ChatPrompt& chat, const text::ChatFormat& format) const;

  const models::Family* family_ = nullptr;
  models::ModelSpec spec_;
  MediaLimits media_limits_;
  int max_tokens_ = 0;
  GenerationConfig generation_;
  Language base_;
  bool template_given_ = false;  // by the options; then it also applies to adapters
  FormLimits form_limits_;
  RetrievalCard retrieval_;
  ReasoningParser reasoning_parser_ = ReasoningParser::kAuto;
  Json template_defaults_;  // an object or null
  mutable std::mutex languages_mutex_;
  // By the digest of their folders' files.
  mutable std::map<Digest, std::weak_ptr<const Language>> languages_;
  std::unique_ptr<media::Loader> loader_;                         // null for text-only models
  std::string no_images_ = "this model does not support images";  // for text-only models
  MediaSettings media_defaults_;
};

inline media::MediaKind media_kind(MediaRef::Kind kind) {
  return kind == MediaRef::Kind::kImage ? media::MediaKind::kImage : media::MediaKind::kVideo;
}

// The identity for requests with this GenerateRequest::cache_salt; unchanged if the salt is empty.
Digest salted(const Digest& identity, const std::string& cache_salt);

}  // namespace valora::serving
