// Hugging Face's tokenizer.json, or a tiktoken vocabulary: normalizer, added tokens, pre-tokenizer,
// BPE, decoder. Thread-safe after loading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/input_folder.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora::text {

class Decoder;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Reads DIR/tokenizer.json, else DIR/qwen.tiktoken (folder_tokens.h), or the metadata of a GGUF
  // file (find_gguf()). Refuses, by name, any setting it cannot apply exactly. other: if its
  // vocabulary without added tokens is the same, both share it in memory. gguf_token: a special
  // token that comes after those of a GGUF file; empty: none.
  static Result<std::shared_ptr<const Tokenizer>> load(const FolderPath& dir,
                                                       const Tokenizer* other = nullptr,
                                                       const std::string& gguf_token = {});
  static Result<std::shared_ptr<const Tokenizer>> from_json(const Json& json,
                                                            const std::string& what);

  // Recognises added tokens, including special ones, in the text. add_special_tokens: apply the
  // post-processor (BOS etc.), as in `tokenizers`. Invalid UTF-8 is read as U+FFFD. mark: a text
  // that occurs in no added token and is removed once these have been recognised (ContentMarks);
  // empty: none.
  virtual std::vector<int32_t> encode(std::string_view utf8, bool add_special_tokens = true,
                                      std::string_view mark = {}) const = 0;
  // Decodes a whole sequence of ids as `tokenizers` does: the decoder treats the first id as the
  // start of a text. Invalid UTF-8 becomes U+FFFD. Unknown ids are skipped.
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const = 0;

  virtual int32_t vocab_size() const = 0;  // largest id + 1, including added tokens
  virtual std::optional<int32_t> token_to_id(std::string_view token) const = 0;
  virtual const std::string* token_text(
      int32_t id) const = 0;  // as in the file; null for unknown ids
  // The bytes of an id in the middle of a text ("▁the" is " the", <0x0A> is that byte); empty for
  // unknown ids. May be part of a UTF-8 character.
  virtual const std::string& token_bytes(int32_t id) const = 0;
  virtual bool is_special(int32_t id) const = 0;
  virtual bool is_added(int32_t id) const = 0;         // an added token, special or not
  virtual std::vector<int32_t> added_ids() const = 0;  // in ascending order
  virtual const Decoder& decoder() const = 0;          // converts token texts to text (Detokenizer)
};

}  // namespace valora::text
