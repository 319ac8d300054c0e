// Prevents a conversation's texts from becoming special tokens, wherever a chat template inserts
// them.
//
// In each text, a mark follows every character with which a special token may begin. However a
// template cuts and joins texts, the marks stay with them, so no special token can begin inside
// one; text written by the template itself has no marks. Tokenizer::encode() removes the marks
// after recognising the added tokens.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "text/chat/chat.h"
#include "text/token_trie.h"
#include "text/tokenizer.h"

namespace valora::text {

class ContentMarks {
 public:
  // placeholders: the added tokens that represent media, special or not. Other added tokens remain
  // tokens in texts, as with `split_special_tokens` of transformers.
  ContentMarks(const Tokenizer& tokenizer, std::span<const int32_t> placeholders);

  // Marks all texts: contents, names and calls of the messages, and the strings in two JSON values.
  // Returns the mark. Errors: kInvalidArgument if the texts already contain all possible marks;
  // kNotImplemented if a special token is a single character, which no mark can break.
  Result<std::string> apply(std::vector<ChatMessage>& messages, OrderedJson& tools,
                            Json& variables) const;

  // Special tokens that begin with a letter, digit or "_" are marked only where they occur in full,
  // so that words stay intact.
  std::string marked(std::string_view text, std::string_view mark) const;

 private:
  template <typename Object>
  Object marked_json(const Object& json, const std::string& mark) const;

  std::set<char32_t> starts_;  // first characters of special tokens
  TokenTrie words_;            // special tokens that begin with a letter, digit or "_"
  TokenTrie ordinary_;         // added tokens that may occur in texts
  std::string single_;         // a special token of one character; empty: none
};

// Turns escapes back into marks, which a template's filter `tojson` may have written.
std::string with_marks_unescaped(const std::string& text, std::string_view mark);
std::string without_marks(std::string_view text, std::string_view mark);

}  // namespace valora::text
