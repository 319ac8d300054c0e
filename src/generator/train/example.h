// A sample as model input: the prompt's tokens, prepared as for serving, followed by the answer's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serving/prompts/frontend.h"

namespace valora::generator {

// Creates the prompt only when it is needed, because a video's frames may take much memory.
// Thread-safe.
using PromptSource = std::function<Result<Prompt>()>;

struct Example {
  std::string origin;           // of the sample, used in errors
  PromptSource prompt;          // recreates the prompt with its media
  std::vector<int32_t> tokens;  // the prompt, the answer and its end token
  int64_t prompt_tokens = 0;
  std::vector<int32_t> positions;  // [axes][tokens]
  struct Visual {
    struct Span {
      int token_begin = 0, rows = 0;
    };
    std::vector<Span> spans;  // the visual's rows, in order
    Digest digest;
  };
  std::vector<PositionRange> joint;  // as in QuerySpan
  std::vector<Visual> visuals;       // ascending, in the order of the prompt's media
  double weight = 1;                 // of its losses
  std::string head;                  // name in AdapterShape::heads; empty: none
  std::vector<int64_t> labels;       // indices of the head's labels: one, or several if multi-label
  int64_t answer_tokens() const { return static_cast<int64_t>(tokens.size()) - prompt_tokens; }
};

struct ExampleRequest {
  std::string origin;
  PromptSource prompt;
  std::optional<std::string> answer;  // absent: trains only the head, not the language model
  double weight = 1;
  std::string head;
  std::vector<int64_t> labels;
};

// Thread-safe.
class ExampleMaker {
 public:
  // axes: number of the model's position axes. kUnprocessable if the tokenizer has no end token.
  static Result<ExampleMaker> open(const serving::Frontend& frontend, int axes, int64_t max_tokens);

  // Errors name the origin. kPayloadTooLarge if the example exceeds max_tokens.
  Result<Example> make(ExampleRequest request) const;

 private:
  ExampleMaker(const serving::Frontend& frontend, int axes, int64_t max_tokens, int32_t end)
      : frontend_(&frontend), axes_(axes), max_tokens_(max_tokens), end_token_(end) {}

  const serving::Frontend* frontend_;
  int axes_;
  int64_t max_tokens_;
  int32_t end_token_;
};

}  // namespace valora::generator
