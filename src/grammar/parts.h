// What is behind the interface of this room. Only its own sources include it.
#pragma once

#include <xgrammar/xgrammar.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/budget.h"
#include "grammar/compiler.h"

namespace valora::grammar {

// What every grammar of a compiler shares.
struct TokenTable {
  std::vector<std::string> bytes;
  int32_t size = 0;  // of the vocabulary
  // Bits of the tokens that begin with a byte from 0xA0 to 0xBF. After 0xED they would make a
  // surrogate, which is no character of UTF-8; xgrammar allows them.
  std::vector<uint32_t> surrogates;
};

struct CompiledGrammar::Parts {
  xgrammar::CompiledGrammar grammar;
  std::shared_ptr<const TokenTable> tokens;
};

// What guarded calls took.
struct Spent {
  double seconds = 0;        // CPU time, of all of them
  bool out_of_time = false;  // whether the last one ended for it
};

// Runs calls of xgrammar on this thread under a budget. Its exceptions become errors:
// kInvalidArgument if it refuses the input, or if it logs that it would apply only a part.
Status guarded(BudgetLimits limits, const std::string& what, Spent& spent,
               const std::function<void()>& body);

}  // namespace valora::grammar
