// From the constraint of a request to the grammar that its answers follow.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "api/constraint.h"
#include "grammar/matcher.h"
#include "text/tokenizer.h"

namespace valora {

// Thread-safe. What the vocabulary needs is built for the first constraint.
class AnswerGrammars {
 public:
  // eos: never part of an answer's text, though the tokenizer may not list them as special.
  // vocabulary: width of the logits.
  AnswerGrammars(std::shared_ptr<const text::Tokenizer> tokenizer, std::vector<int32_t> eos,
                 int64_t vocabulary);

  // Errors name the constraint's field.
  Result<grammar::GrammarMatcher> start(const AnswerConstraint& constraint);

 private:
  grammar::GrammarCompiler& compiler();

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::vector<int32_t> eos_;
  int64_t vocabulary_;
  std::mutex mutex_;
  std::unique_ptr<grammar::GrammarCompiler> compiler_;
};

}  // namespace valora
