// How the byte-level tokenizers of GGUF files split text into words.
#pragma once

#include "base/json/json.h"
#include "base/result.h"
#include "base/tensors/gguf.h"

namespace valora::text {

struct WordRule {
  const char* name;          // in tokenizer.ggml.pre
  const char* pattern;       // null: GPT-2's
  bool digits = false;       // each digit is a word
  bool composed = false;     // texts are normalized to NFC
  bool whole_words = false;  // a word that is a token is not split
  bool adds_bos = false;     // default, if the file does not say
};

// kUnprocessable if the file names no rule or an unknown one.
Result<const WordRule*> gguf_word_rule(const GgufMetadata& metadata);

// Parts of an equivalent tokenizer.json.
Json byte_level_part(bool words);
Json pre_tokenizer_part(const WordRule& rule);

}  // namespace valora::text
