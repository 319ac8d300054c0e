// Grammars for tests: matchers over the byte vocabulary, and a schema without end.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/json/json.h"
#include "grammar/testing/byte_vocabulary.h"

namespace valora::grammar {

// Starts a matcher over the byte vocabulary. One compiler is shared by all.
inline GrammarMatcher start(const GrammarSpec& spec) {
  static GrammarCompiler compiler(byte_vocabulary());
  const auto compiled = compiler.compile(spec);
  EXPECT_TRUE(compiled.ok()) << compiled.error().message;
  return *GrammarMatcher::start(*compiled);
}

// A schema whose compilation exceeds any time and memory limit.
// title: makes it differ from others.
inline std::string endless_schema(const std::string& title = {}) {
  Json properties = Json::object();
  for (int i = 0; i < 300; ++i) properties["p" + std::to_string(i)] = {{"type", "integer"}};
  return Json{{"title", title},
              {"type", "object"},
              {"properties", properties},
              {"minProperties", 150},
              {"maxProperties", 160}}
      .dump();
}

}  // namespace valora::grammar
