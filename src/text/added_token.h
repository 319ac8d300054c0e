// A text that is always a single token.
#pragma once

#include <cstdint>
#include <string>

namespace valora::text {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // not matched inside a word
  bool lstrip = false;       // includes white space before it
  bool rstrip = false;       // includes white space after it
  bool normalized = false;   // matched in normalized text, in its normalized form
  bool special = false;
};

// True if the tokens are equal except for their ids.
inline bool same_token(const AddedToken& a, const AddedToken& b) {
  return a.content == b.content && a.single_word == b.single_word && a.lstrip == b.lstrip &&
         a.rstrip == b.rstrip && a.normalized == b.normalized && a.special == b.special;
}

}  // namespace valora::text
