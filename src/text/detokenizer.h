// Streaming decode of one sequence: text comes out as soon as it is final and never in half characters.
#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace valora::text {

// The concatenation of all push() results and flush() equals Tokenizer::decode of all ids.
class Detokenizer {
 public:
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens);
  std::string push(int32_t id);
  // What is left at the end of the sequence: an incomplete character becomes U+FFFD.
  std::string flush();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  std::string pending_;  // bytes that do not yet make a whole character
};

}  // namespace valora::text
