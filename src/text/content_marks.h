// Keeps a conversation's texts from becoming special tokens, wherever a chat template puts them.
//
// Within each text, a mark stands behind every character with which a special token may begin. A
// template cuts and joins texts with their marks, so no special token comes to begin in one; what
// the template writes itself has no marks. Tokenizer::encode() takes the marks out once it has
// recognised the added tokens.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/chat.h"
#include "text/token_trie.h"
#include "text/tokenizer.h"

namespace valora::text {

class ContentMarks {
 public:
  // placeholders: the added tokens that stand for media, special or not. Other added tokens stay
  // tokens in texts, as with `split_special_tokens` of transformers.
  ContentMarks(const Tokenizer& tokenizer, std::span<const int32_t> placeholders);

  // Marks all texts: contents, names and calls of the messages, and the strings of two JSON values.
  // Returns the mark. Errors: kInvalidArgument if the texts have all possible marks already;
  // kNotImplemented if a special token is a single character, which no mark can break.
  Result<std::string> apply(std::vector<ChatMessage>& messages, OrderedJson& tools,
                            Json& variables) const;

  // Special tokens that begin with a letter, digit or "_" are marked only where they stand whole,
  // so that words keep their form.
  std::string marked(std::string_view text, std::string_view mark) const;

 private:
  template <typename Object>
  Object marked_json(const Object& json, const std::string& mark) const;

  std::set<char32_t> starts_;  // of special tokens
  TokenTrie words_;            // special tokens that begin with a letter, digit or "_"
  TokenTrie ordinary_;         // added tokens that texts may have
  std::string single_;         // a special token of one character; empty: there is none
};

// The text of a template in which the filter `tojson` may have written marks as escapes, with those
// as marks.
std::string with_marks_unescaped(const std::string& text, std::string_view mark);
std::string without_marks(std::string_view text, std::string_view mark);

}  // namespace valora::text
