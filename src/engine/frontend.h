// From what a client sends to what the scheduler runs: media, chat format, tokens, placeholders,
// positions, identity. Thread-safe; works on the media workers, never on the engine thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/options.h"
#include "api/request.h"
#include "engine/generation_config.h"
#include "engine/loaded_adapter.h"
#include "media/loader.h"
#include "memory/kv_cache.h"
#include "models/registry.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace valora {

struct PreparedPrompt {
  std::vector<int32_t> tokens;
  models::Positions positions;
  std::vector<models::VisualSpan> visual;  // ascending
  memory::KvIdentity identity;
};

class Frontend {
 public:
  // Reads tokenizer and preprocessor from the model's folder. options.max_model_len, or the model's
  // own length where it is absent, bounds a prompt and each of its images.
  static Result<std::unique_ptr<Frontend>> open(const EngineOptions& options,
                                                const models::Family& family,
                                                const models::ModelSpec& spec);

  // All that can be said of a prompt before its media are there: part types, limits, placeholders.
  Status check(const Prompt& prompt) const;
  Result<PreparedPrompt> prepare(const Prompt& prompt, bool add_generation_prompt,
                                 std::span<const AppliedAdapter> adapters) const;

  const std::shared_ptr<const text::Tokenizer>& tokenizer() const { return tokenizer_; }
  const text::ChatFormat& chat_format() const { return *chat_format_; }
  const GenerationConfig& generation() const { return generation_; }
  media::LoaderStats media_stats() const {
    return loader_ ? loader_->stats() : media::LoaderStats{};
  }
  // Token ids without media: of text, or of a conversation's text parts and placeholders.
  Result<std::vector<int32_t>> tokenize(const Prompt& prompt, bool add_special_tokens) const;

 private:
  struct Rendered {
    std::vector<int32_t> tokens;
    std::vector<MediaRef> media;   // in the order of the conversation
    const char* field = "prompt";  // of the request: what errors name
  };
  Result<Rendered> render(const Prompt& prompt, bool add_generation_prompt) const;
  std::vector<int32_t> encode_chat(const std::string& text) const;
  Result<PreparedPrompt> expand(Rendered rendered) const;
  Status check_length(size_t tokens, const char* field) const;
  Status check_text(const std::string& text, const char* field) const;
  Status check_placeholders() const;

  const models::Family* family_ = nullptr;
  const models::ModelSpec* spec_ = nullptr;
  std::vector<int32_t> around_;  // what the tokenizer puts around a text: BOS, where it has one
  size_t max_text_bytes_ = 0;    // more cannot be max_tokens_ tokens
  MediaLimits media_limits_;
  int max_tokens_ = 0;
  GenerationConfig generation_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::unique_ptr<text::ChatFormat> chat_format_;
  std::unique_ptr<media::Loader> loader_;  // null for text-only models
};

// The adapters with their scales as the root of a KV chain; the base model (and heads alone) give
// Digest{}.
Digest identity_of(std::span<const AppliedAdapter> adapters);

}  // namespace valora
