// Internals of this room, included only by its own sources.
#pragma once

#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/budget.h"
#include "grammar/compiler.h"

namespace valora::grammar {

// Shared by all grammars of a compiler.
struct TokenTable {
  std::vector<std::string> bytes;
  int32_t size = 0;  // of the vocabulary
  // Mask of the tokens that begin with a byte from 0xA0 to 0xBF. After 0xED they would form a
  // surrogate, which is not valid UTF-8; xgrammar allows them.
  std::vector<uint32_t> surrogates;
};

struct CompiledGrammar::Parts {
  xgrammar::CompiledGrammar grammar;
  std::shared_ptr<const TokenTable> tokens;
  int64_t shortest = 0;  // bytes of the shortest answer; a lower bound
};

// The cost of guarded calls.
struct Spent {
  double seconds = 0;        // total CPU time
  int64_t bytes = 0;         // total memory allocated and not freed
  bool out_of_time = false;  // the last call exceeded its time
};

// Runs xgrammar calls on this thread under a budget and turns its exceptions into errors:
// kInvalidArgument if it rejects the input, or if it logs that it would apply only part of it;
// kCancelled soon after a stop is requested.
Status guarded(BudgetLimits limits, const std::string& what, Spent& spent,
               const std::function<void()>& body, std::stop_token stop = {});

}  // namespace valora::grammar
