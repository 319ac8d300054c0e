// "added_tokens" of tokenizer.json: texts that are one token wherever they stand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/models/model.h"
#include "text/normalizers/normalizer.h"
#include "text/token_trie.h"

namespace valora::text {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // looked for in the normalized text, in its normalized form
  bool special = false;
};

// A stretch of text: an added token, or (without id) text between them.
struct Segment {
  std::string_view text;
  std::optional<int32_t> id;
};

class AddedTokens {
 public:
  // normalizer may be null. Refuses ids other than those that `tokenizers` would give.
  static Result<AddedTokens> read(const Json& json, const std::string& where, const Model& model,
                                  const Normalizer* normalizer);

  // First the raw text is cut at tokens of normalized = false, then each rest, once normalized, at
  // the others.
  std::vector<Segment> split_raw(std::string_view text) const { return split(text, raw_); }
  std::vector<Segment> split_normalized(std::string_view text) const {
    return split(text, normalized_);
  }

  const AddedToken* find(int32_t id) const;
  std::optional<int32_t> token_to_id(std::string_view content) const;
  int32_t max_id() const { return tokens_.empty() ? -1 : tokens_.rbegin()->first; }
  bool is_special(std::string_view content) const;
  const std::map<int32_t, AddedToken>& tokens() const { return tokens_; }

 private:
  Status add(AddedToken token, const std::string& where, const Model& model);
  Status build_tries(const std::string& where, const Normalizer* normalizer);
  std::vector<Segment> split(std::string_view text, const TokenTrie& trie) const;

  std::map<int32_t, AddedToken> tokens_;
  std::map<std::string, int32_t, std::less<>> ids_;
  std::vector<int32_t> order_;  // as the file has them
  TokenTrie raw_;
  TokenTrie normalized_;
};

}  // namespace valora::text
