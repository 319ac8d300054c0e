// From a description of answers to a grammar over the tokens of one vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/budget.h"
#include "grammar/spec.h"

namespace valora::grammar {

struct Vocabulary {
  // The bytes that each token adds to the answer, by id. Empty: a grammar never allows the token
  // (special tokens, unknown ids).
  std::vector<std::string> bytes;
  int32_t size = 0;  // of the model's output; ids from bytes.size() on are never allowed
};

// Immutable; shared by any number of matchers on any threads.
class CompiledGrammar {
 public:
  struct Parts;  // xgrammar's
  explicit CompiledGrammar(std::unique_ptr<const Parts> parts);
  ~CompiledGrammar();
  CompiledGrammar(const CompiledGrammar&) = delete;
  CompiledGrammar& operator=(const CompiledGrammar&) = delete;

  size_t bytes() const;  // memory, about
  const Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<const Parts> parts_;
};

struct CompilerOptions {
  size_t cache_bytes = 64 << 20;
  size_t refusals = 1024;  // how many errors are kept
  // Limits of one compilation.
  BudgetLimits limits{int64_t{512} << 20, 5};
  double quick_seconds = 0.2;  // of CPU time, of one that nothing else should wait for
};

// Thread-safe. compile() runs one compilation at a time, and so does try_compile(), in parallel to
// compile(). Cached grammars and errors do not wait.
class GrammarCompiler {
 public:
  explicit GrammarCompiler(Vocabulary vocabulary, CompilerOptions options = {});
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // Those of check(); kInvalidArgument also if the description takes more than the limits, allows
  // no answer, only the empty one, or none of this vocabulary.
  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSpec& spec);

  // The same, but nothing if it takes more than the quick time; the next call then says so at once.
  std::optional<Result<std::shared_ptr<const CompiledGrammar>>> try_compile(
      const GrammarSpec& spec);

  struct Stats {
    int64_t compiled = 0, refused = 0, hits = 0;
    size_t entries = 0, bytes = 0;  // grammars in the cache
    size_t refusals = 0;            // errors in it
  };
  Stats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace valora::grammar
