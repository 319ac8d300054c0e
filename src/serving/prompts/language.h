// How texts become tokens and tokens texts: of the base model, or of an adapter with tokens of its
// own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "adapters/adapter_spec.h"
#include "api/options.h"
#include "base/digest.h"
#include "base/input_folder.h"
#include "serving/sampling/answer_grammars.h"
#include "text/chat.h"
#include "text/content_marks.h"
#include "text/tokenizer.h"

namespace valora::serving {

// Thread-safe once it is made.
struct Language {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  int64_t vocab = 0;  // how many tokens have embeddings and logits
  std::shared_ptr<const text::ChatFormat> chat_format;
  std::shared_ptr<const text::ChatFormat>
      video_format;                    // of conversations with videos; null: as others
  FolderPath folder{""};               // has the special tokens of its templates
  std::vector<int32_t> eos_token_ids;  // end an answer unless a request ignores them
  // What is made of these, by finish_language().
  std::vector<int32_t> around;  // the special tokens that the tokenizer adds to an empty text
  size_t longest_token = 0;     // in bytes, or more
  std::unique_ptr<const text::ContentMarks> content_marks;
  std::shared_ptr<AnswerGrammars> grammars;
};

// placeholders: the tokens that stand for media. kUnprocessable if the tokenizer puts a token
// around every prompt that has no embedding.
Status finish_language(Language& language, std::span<const int32_t> placeholders,
                       const FormLimits& limits);

// Whether requests of an adapter need a language of its own: it changes embeddings or the output
// layer, and has another number of tokens than the base model, or a tokenizer with added tokens
// that the base model's lacks or has as others. Tokenizers of other adapters are not read: their
// tokens mean to the model what they meant before. kUnprocessable for added tokens without a
// tokenizer.json.
Result<bool> needs_language(const adapters::AdapterSpec& spec, const Language& base);

// Of the files that read_language() reads, and of the number of tokens.
Result<Digest> digest_of_language(const adapters::AdapterSpec& spec);
// The adapter's tokenizer, or the base model's if its folder has none; its chat template, if it has
// one and keeps_template is false; and the base model's ends of answers besides its tokenizer's
// eos_token. Not finished. Errors: kUnprocessable naming the file or token.
Result<Language> read_language(const adapters::AdapterSpec& spec, const Language& base,
                               bool keeps_template, const std::string& image_placeholder,
                               const std::string& video_placeholder);

}  // namespace valora::serving
