// Added tokens, texts that are always a single token: from "added_tokens" of tokenizer.json and
// from the folder's other files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "text/models/model.h"
#include "text/normalizers/normalizer.h"
#include "text/token_trie.h"

namespace valora::text {

// A text that is always a single token.
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

// An added token, or (without id) the text between two of them.
struct Segment {
  std::string_view text;
  std::optional<int32_t> id;
};

class AddedTokens {
 public:
  // json: content of tokenizer.json. more: tokens added after its own. normalizer: may be null. As
  // in `tokenizers`, a token gets the model's id, or else the next free one, whatever its entry
  // says; a token that is added again gets the last flags.
  static Result<AddedTokens> read(const Json& json, const std::string& where, const Model& model,
                                  const Normalizer* normalizer,
                                  const std::vector<AddedToken>& more = {});

  // The raw text is first split at tokens with normalized = false. Each remaining part is
  // normalized and split at the others.
  std::vector<Segment> split_raw(std::string_view text) const { return split(text, raw_); }
  std::vector<Segment> split_normalized(std::string_view text) const {
    return split(text, normalized_);
  }

  const AddedToken* find(int32_t id) const;
  std::optional<int32_t> token_to_id(std::string_view content) const;
  int32_t max_id() const { return tokens_.empty() ? -1 : tokens_.rbegin()->first; }
  bool is_special(std::string_view content) const;
  const std::map<int32_t, AddedToken>& tokens() const { return tokens_; }
  // As a clause: the first token whose id differs from that in its entry; empty: none.
  const std::string& renumbered() const { return renumbered_; }

 private:
  // A text form under which a token is matched.
  struct Form {
    int32_t id;
    bool normalized, special;
  };
  Status add(AddedToken token, const std::string& where, const Model& model);
  Status build_tries(const std::string& where, const Normalizer* normalizer);
  std::vector<Segment> split(std::string_view text, const TokenTrie& trie) const;

  std::map<int32_t, AddedToken> tokens_;
  std::map<std::string, int32_t, std::less<>> ids_;
  std::set<std::string, std::less<>> special_;  // remains set if the token is added again
  std::vector<Form> forms_;                     // in order of addition
  std::string renumbered_;
  TokenTrie raw_;
  TokenTrie normalized_;
};

}  // namespace valora::text
