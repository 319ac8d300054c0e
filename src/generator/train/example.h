// A sample as the model sees it: the prompt's tokens as serving makes them, the answer's behind
// them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/frontend.h"

namespace valora::generator {

struct Example {
  std::string origin;           // of the sample, for errors
  Prompt prompt;                // what its media are read from again
  std::vector<int32_t> tokens;  // the prompt, then the answer and the token that ends it
  int64_t prompt_tokens = 0;
  std::vector<int32_t> positions;  // [axes][tokens]
  struct Visual {
    int token_begin = 0, tokens = 0;
    Digest digest;
  };
  std::vector<Visual> visuals;  // ascending
  double weight = 1;            // of its losses
  std::optional<int> head;      // index of a head in training
  std::vector<int64_t> labels;  // indices of the head's: one, or those of a multi-label sample
  int64_t answer_tokens() const { return static_cast<int64_t>(tokens.size()) - prompt_tokens; }
};

struct ExampleRequest {
  std::string origin;
  Prompt prompt;
  std::optional<std::string> answer;  // none: the language model is not trained, only a head
  double weight = 1;
  std::optional<int> head;
  std::vector<int64_t> labels;
};

// Thread-safe, as Frontend is.
class ExampleMaker {
 public:
  // kUnprocessable where no token could end an answer.
  static Result<ExampleMaker> open(const Frontend& frontend, int axes, int64_t max_tokens);

  // Errors name the origin. Over max_tokens: kPayloadTooLarge.
  Result<Example> make(ExampleRequest request) const;

 private:
  ExampleMaker(const Frontend& frontend, int axes, int64_t max_tokens, int32_t end)
      : frontend_(&frontend), axes_(axes), max_tokens_(max_tokens), end_token_(end) {}

  const Frontend* frontend_;
  int axes_;
  int64_t max_tokens_;
  int32_t end_token_;
};

}  // namespace valora::generator
