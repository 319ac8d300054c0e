// Compiles descriptions of answers into grammars over the tokens of one vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/budget.h"
#include "grammar/spec.h"

namespace valora::grammar {

struct Vocabulary {
  // The bytes that each token adds to the answer, by id. Empty: no grammar allows the token
  // (special tokens, unknown ids).
  std::vector<std::string> bytes;
  int32_t size = 0;  // of the model's output; ids from bytes.size() on are never allowed
};

// Immutable; may be shared by any number of matchers on any threads.
class CompiledGrammar {
 public:
  struct Parts;  // xgrammar types
  explicit CompiledGrammar(std::unique_ptr<const Parts> parts);
  ~CompiledGrammar();
  CompiledGrammar(const CompiledGrammar&) = delete;
  CompiledGrammar& operator=(const CompiledGrammar&) = delete;

  size_t bytes() const;  // approximate memory use
  const Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<const Parts> parts_;
};

struct CompilerOptions {
  size_t cache_bytes = 64 << 20;
  size_t refusals = 1024;  // number of cached errors
  // Limits of one compilation.
  BudgetLimits limits{int64_t{512} << 20, 5};
  double quick_seconds = 0.2;  // CPU time limit of try_compile()
};

// Thread-safe. compile() runs one compilation at a time, and so does try_compile(), in parallel
// with compile(). Cached grammars and errors are returned without waiting.
class GrammarCompiler {
 public:
  explicit GrammarCompiler(Vocabulary vocabulary, CompilerOptions options = {});
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // Errors: those of check(); kInvalidArgument also if compiling exceeds the limits, or if the
  // grammar allows no answer, only the empty one, or none in this vocabulary; kCancelled soon after
  // a stop is requested, whatever it is doing. Then nothing is cached.
  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSpec& spec,
                                                         const std::stop_token& stop = {});

  // The same, but gives up and returns nullopt after the quick time; later calls then return
  // nullopt at once.
  std::optional<Result<std::shared_ptr<const CompiledGrammar>>> try_compile(
      const GrammarSpec& spec, const std::stop_token& stop = {});

  // The cached grammar or error; nullopt if there is none.
  std::optional<Result<std::shared_ptr<const CompiledGrammar>>> cached(const GrammarSpec& spec);

  struct Stats {
    int64_t begun = 0, compiled = 0, refused = 0, stopped = 0, hits = 0;
    size_t entries = 0, bytes = 0;  // grammars in the cache
    size_t refusals = 0;            // cached errors
  };
  Stats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace valora::grammar
