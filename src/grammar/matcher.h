// Follows one answer through a grammar and tells which tokens may come next.
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
  // At the start of an answer.
  static Result<GrammarMatcher> start(std::shared_ptr<const CompiledGrammar> grammar);
  GrammarMatcher(const GrammarMatcher& other);
  GrammarMatcher& operator=(const GrammarMatcher& other);
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;
  ~GrammarMatcher();

  // The tokens that may follow, without those that end an answer. The first call after a
  // token fills the mask, the others return it, or the same error: kUnprocessable if no token of
  // the vocabulary continues the answer although it is not complete; kInvalidArgument if finding
  // out takes more than 0.25 seconds or 256 MiB; kUnavailable without memory.
  Result<MaskView> mask();
  // The same if it has been called since the last token, and gave a mask.
  std::optional<MaskView> known_mask() const;
  // may_end(): the answer so far is complete. must_end(): nothing can follow it.
  bool may_end() const;
  bool must_end() const;

  // CPU time of the calls above and below so far, with those of what this is a copy of.
  double cpu_seconds() const;

  // Takes a token that the mask allows. kInvalidArgument for any other. Where the answer may end,
  // the mask is filled at once, because must_end() depends on it, and may be an error as above.
  Status accept(int32_t token);

 private:
  struct State;
  explicit GrammarMatcher(std::unique_ptr<State> state);
  Status fill();
  std::unique_ptr<State> state_;
};

}  // namespace valora::grammar
