// Follows the thought of an answer token by token, to say when the answer's form begins to hold and
// when the thought must be closed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "serving/output/thought_splitter.h"
#include "serving/prompts/thoughts.h"

namespace valora::serving {

class ThoughtProgress {
 public:
  struct Options {
    text::ThoughtPlace start = text::ThoughtPlace::kUndecided;
    std::optional<int> budget = {};  // tokens
    bool skip_special_tokens = true;
  };
  // syntax: outlives this object.
  ThoughtProgress(const ThoughtSyntax& syntax, std::shared_ptr<const text::Tokenizer> tokenizer,
                  Options options);

  bool undecided() const { return splitter_.place() == text::ThoughtPlace::kUndecided; }
  bool open() const { return splitter_.place() == text::ThoughtPlace::kThought; }

  // The token that must come next to close a thought whose budget is spent.
  std::optional<int32_t> forced() const;
  // Within the thought: the tokens that would close it and begin the answer at once.
  std::span<const int32_t> overruns() const { return syntax_.overruns[splitter_.end_begun()]; }
  // The token that opens a thought, where it may.
  std::optional<int32_t> opening() const {
    return undecided() ? syntax_.begin_token : std::nullopt;
  }

  void accept(int32_t token);
  // The answer has begun without a thought.
  void begin_answer();

 private:
  const ThoughtSyntax& syntax_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  Options options_;
  ThoughtSplitter splitter_;
  int tokens_ = 0;   // of the thought
  int closing_ = 0;  // forced tokens
};

}  // namespace valora::serving
