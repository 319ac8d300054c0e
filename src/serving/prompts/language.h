// Conversion between text and tokens: the base model's, or that of an adapter with its own tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "adapters/adapter_spec.h"
#include "api/options.h"
#include "base/digest.h"
#include "base/files/input_folder.h"
#include "serving/prompts/thoughts.h"
#include "serving/sampling/answer_grammars.h"
#include "text/chat/chat.h"
#include "text/chat/content_marks.h"
#include "text/tokenizer.h"

namespace valora::serving {

// Thread-safe once created.
struct Language {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  int64_t vocab = 0;  // number of tokens with embeddings and logits
  std::shared_ptr<const text::ChatFormat> chat_format;
  std::shared_ptr<const text::ChatFormat>
      video_format;                    // for conversations with videos; null: as for others
  FolderPath folder{""};               // provides the special tokens for its templates
  std::vector<int32_t> eos_token_ids;  // end an answer unless the request ignores them
  // Derived from the above by finish_language().
  std::vector<int32_t> around;  // special tokens that the tokenizer adds to an empty text
  size_t longest_token = 0;     // upper bound in bytes
  std::unique_ptr<const text::ContentMarks> content_marks;
  std::shared_ptr<AnswerGrammars> grammars;
  std::optional<ThoughtSyntax> thoughts;  // absent: answers to its conversations have none
};

// placeholders: the tokens that represent media. kUnprocessable if the tokenizer adds a token
// without an embedding to every prompt.
Status finish_language(Language& language, std::span<const int32_t> placeholders,
                       const FormLimits& limits, ReasoningParser parser);

// True if an adapter's requests need their own language: it changes embeddings or the output layer,
// and has another vocabulary size than the base model, or a tokenizer with added tokens that are
// missing from the base model's or differ there. Other adapters' tokenizers are not read: to the
// model, their tokens mean the same as before. kUnprocessable for added tokens without a
// tokenizer.json.
Result<bool> needs_language(const adapters::AdapterSpec& spec, const Language& base);

// Covers the files that read_language() reads, and the number of tokens.
Result<Digest> digest_of_language(const adapters::AdapterSpec& spec);
// The adapter's tokenizer, or the base model's if its folder has none; the adapter's chat template,
// if it has one and keeps_template is false; the base model's end-of-answer tokens plus its own
// tokenizer's eos_token. Not finished yet. Errors: kUnprocessable naming the file or token.
Result<Language> read_language(const adapters::AdapterSpec& spec, const Language& base,
                               bool keeps_template, const std::string& image_placeholder,
                               const std::string& video_placeholder);

}  // namespace valora::serving
