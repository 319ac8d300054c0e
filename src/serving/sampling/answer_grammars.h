// Compiles a request's constraint to the grammar that its answers must follow.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "api/constraint.h"
#include "api/options.h"
#include "base/digest.h"
#include "grammar/matcher.h"
#include "text/tokenizer.h"

namespace valora::serving {

// Thread-safe. Vocabulary-dependent data is built for the first constraint.
class AnswerGrammars {
 public:
  // eos: excluded from the text of answers even if the tokenizer does not list them as special.
  // vocabulary: width of the logits.
  AnswerGrammars(std::shared_ptr<const text::Tokenizer> tokenizer, std::vector<int32_t> eos,
                 int64_t vocabulary, const FormLimits& limits);

  // Errors name the constraint's field. kCancelled soon after a stop is requested.
  Result<grammar::GrammarMatcher> start(const AnswerConstraint& constraint, JsonSpacing spacing,
                                        const std::stop_token& stop = {});
  // As start(), but nullopt if it would take longer than the quick time.
  std::optional<Result<grammar::GrammarMatcher>> try_start(const AnswerConstraint& constraint,
                                                           JsonSpacing spacing,
                                                           const std::stop_token& stop = {});
  // As start(), but nullopt if the form would have to be compiled.
  std::optional<Result<grammar::GrammarMatcher>> start_cached(const AnswerConstraint& constraint,
                                                              JsonSpacing spacing);
  // Counts compilations in this vocabulary.
  grammar::GrammarCompiler::Stats stats();

  // Equal for forms with the same grammar: its cache key together with the vocabulary.
  static Digest digest_of(const AnswerConstraint& constraint, JsonSpacing spacing);

 private:
  grammar::GrammarCompiler& compiler();

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::vector<int32_t> eos_;
  int64_t vocabulary_;
  FormLimits limits_;
  std::mutex mutex_;
  std::unique_ptr<grammar::GrammarCompiler> compiler_;
};

}  // namespace valora::serving
