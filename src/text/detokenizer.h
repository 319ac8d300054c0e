// Streaming decode of one sequence: text comes out as soon as it is final and never in half
// characters.
#pragma once

#include <memory>
#include <string>

#include "text/decoders/decoder.h"
#include "text/tokenizer.h"

namespace valora::text {

// The concatenation of all push() results and flush() equals Tokenizer::decode of all ids.
class Detokenizer {
 public:
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens);
  std::string push(int32_t id);
  // What is left at the end of the sequence: an incomplete character becomes U+FFFD.
  std::string flush();
  // Whole characters that flush() would return now, and that are only held back because a byte
  // token to come could make all of their run invalid: what a stop string may be looked for in
  // before they are final.
  std::string provisional() const { return stream_.provisional(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  DecodeStream stream_;
};

}  // namespace valora::text
