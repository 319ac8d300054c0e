// A vocabulary of the 256 bytes, a few longer tokens and one special token, for tests.
#pragma once

#include <string>
#include <vector>

#include "grammar/compiler.h"
#include "grammar/matcher.h"

namespace valora::grammar {

inline constexpr int32_t kLongTokens = 256;  // id of the first longer token
inline constexpr int32_t kSpecialToken = 260;
inline constexpr int32_t kTestVocabulary = 264;

// Ids: the byte's value, then {" 256, ": 257, true 258, "ab" 259, a special token 260.
inline Vocabulary byte_vocabulary() {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.bytes.emplace_back(1, static_cast<char>(byte));
  for (const char* text : {"{\"", "\":", "true", "ab", ""}) vocabulary.bytes.emplace_back(text);
  vocabulary.size = kTestVocabulary;
  return vocabulary;
}

// True if the grammar accepts the text as a whole answer, byte by byte.
inline bool matches(GrammarMatcher matcher, const std::string& text) {
  for (const char c : text)
    if (!matcher.accept(static_cast<unsigned char>(c)).ok()) return false;
  return matcher.may_end();
}

}  // namespace valora::grammar
