// "added_tokens" of tokenizer.json: texts that are always one token.
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
  bool single_word = false;  // not matched inside a word
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // includes the white space after it
  bool normalized = false;   // matched in normalized text, by its normalized form
  bool special = false;
};

// An added token, or (without id) the text between two.
struct Segment {
  std::string_view text;
  std::optional<int32_t> id;
};

class AddedTokens {
 public:
  // normalizer may be null. Refuses ids that `tokenizers` would not assign.
  static Result<AddedTokens> read(const Json& json, const std::string& where, const Model& model,
                                  const Normalizer* normalizer);

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

 private:
  Status add(AddedToken token, const std::string& where, const Model& model);
  Status build_tries(const std::string& where, const Normalizer* normalizer);
  std::vector<Segment> split(std::string_view text, const TokenTrie& trie) const;

  std::map<int32_t, AddedToken> tokens_;
  std::map<std::string, int32_t, std::less<>> ids_;
  std::vector<int32_t> order_;  // in the file's order
  TokenTrie raw_;
  TokenTrie normalized_;
};

}  // namespace valora::text
