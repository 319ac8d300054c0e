// How byte-level tokenizers of GGUF files find words.
#pragma once

#include "base/gguf.h"
#include "base/json.h"
#include "base/result.h"

namespace valora::text {

struct WordRule {
  const char* name;          // of tokenizer.ggml.pre
  const char* pattern;       // null: GPT-2's
  bool digits = false;       // each digit is a word
  bool composed = false;     // texts are brought into form C
  bool whole_words = false;  // a word that is a token is not split
  bool adds_bos = false;     // unless the file says otherwise
};

// kUnprocessable if the file names none, or one that is not known.
Result<const WordRule*> gguf_word_rule(const GgufMetadata& metadata);

// Parts of tokenizer.json.
Json byte_level_part(bool words);
Json pre_tokenizer_part(const WordRule& rule);

}  // namespace valora::text
