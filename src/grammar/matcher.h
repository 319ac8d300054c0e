// Follows one answer through a grammar and reports which tokens may come next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "grammar/compiler.h"

namespace valora::grammar {

// One bit per token: bit id % 32 of word id / 32.
using MaskView = std::span<const uint32_t>;

inline bool allows(MaskView mask, int32_t id) {
  return id >= 0 && static_cast<size_t>(id) / 32 < mask.size() &&
         ((mask[id / 32] >> (id % 32)) & 1);
}

// Not thread-safe. Copies are independent.
class GrammarMatcher {
 public:
  // Starts at the beginning of an answer.
  static Result<GrammarMatcher> start(std::shared_ptr<const CompiledGrammar> grammar);
  GrammarMatcher(const GrammarMatcher& other);
  GrammarMatcher& operator=(const GrammarMatcher& other);
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;
  ~GrammarMatcher();

  // The tokens that may follow, excluding those that end an answer. The first call after a token
  // fills the mask; further calls return the same mask or error. Errors: kUnprocessable if the
  // answer is incomplete and no token of the vocabulary continues it; kInvalidArgument if filling
  // takes more than 0.25 seconds or 256 MiB; kUnavailable if memory runs out.
  Result<MaskView> mask();
  // The mask if mask() has succeeded since the last token.
  std::optional<MaskView> known_mask() const;
  // may_end(): the answer so far is complete. must_end(): nothing can follow it.
  bool may_end() const;
  bool must_end() const;

  // CPU time of all calls so far, including those of the matcher that this one was copied from.
  double cpu_seconds() const;
  // Memory that the calls have taken and not given back; it can grow with every token.
  int64_t bytes() const;
  // Bytes of the grammar's shortest answer; a lower bound.
  int64_t shortest_answer() const;

  // Accepts a token that the mask allows; kInvalidArgument for any other. Where the answer may end,
  // the mask is filled at once, because must_end() depends on it; this can fail as above.
  Status accept(int32_t token);

 private:
  struct State;
  explicit GrammarMatcher(std::unique_ptr<State> state);
  Status fill();
  std::unique_ptr<State> state_;
};

}  // namespace valora::grammar
