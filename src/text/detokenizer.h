// Streaming decoder for one sequence: returns text as soon as it is final, in whole characters
// only.
#pragma once

#include <memory>
#include <string>

#include "text/decoders/decoder.h"
#include "text/tokenizer.h"

namespace valora::text {

// The concatenated results of push() and flush() equal Tokenizer::decode() of all ids.
class Detokenizer {
 public:
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens);
  std::string push(int32_t id);
  // The remaining text at the end of the sequence. An incomplete character becomes U+FFFD.
  std::string flush();
  // Whole characters that flush() would return now. They are held back only because a later byte
  // token could make their run invalid. Stop strings are matched against them before they are
  // final.
  std::string provisional() const { return stream_.provisional(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  DecodeStream stream_;
};

}  // namespace valora::text
