// Creates matchers over the byte vocabulary, for tests.
#pragma once

#include <gtest/gtest.h>

#include "grammar/testing/byte_vocabulary.h"

namespace valora::grammar {

// Starts a matcher. One compiler is shared by all.
inline GrammarMatcher start(const GrammarSpec& spec) {
  static GrammarCompiler compiler(byte_vocabulary());
  const auto compiled = compiler.compile(spec);
  EXPECT_TRUE(compiled.ok()) << compiled.error().message;
  return *GrammarMatcher::start(*compiled);
}

}  // namespace valora::grammar
