// Model "BPE": a piece starts as single characters; adjacent symbols with the lowest merge rank
// merge first.
#pragma once

#include <array>

#include "text/models/merge_table.h"
#include "text/models/model.h"
#include "text/models/vocabulary.h"
#include "text/models/word_cache.h"

namespace valora::text {

struct BpeOptions {
  std::optional<int32_t> unk_id;  // for characters without a token; if unset, they are dropped
  bool fuse_unk = false;          // a run of unknown characters becomes one token
  bool ignore_merges = false;     // a piece that is a token itself is not split
  // Characters without a token become the tokens of their bytes, <0x00> to <0xFF>.
  bool byte_fallback = false;
};

class Bpe final : public Model {
 public:
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options);

  void tokenize(std::string_view piece, std::vector<int32_t>& ids) const override;
  int32_t token_count() const override { return vocabulary_.size(); }
  int32_t max_id() const override { return vocabulary_.max_id(); }
  std::optional<int32_t> token_to_id(std::string_view token) const override {
    return vocabulary_.find(token);
  }
  const std::string* id_to_token(int32_t id) const override { return vocabulary_.token(id); }

 private:
  static constexpr int32_t kNoToken = -1;

  std::vector<int32_t> character_ids(std::string_view piece) const;
  int32_t character_id(std::string_view character) const;
  bool append_byte_ids(std::string_view character, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  BpeOptions options_;
  std::array<int32_t, 128> ascii_ids_;  // tokens of single ASCII characters
  std::array<int32_t, 256> byte_ids_;   // tokens <0x00> to <0xFF>
  mutable WordCache cache_;
};

Result<std::unique_ptr<const Model>> make_bpe(const Json& json, const std::string& where);
// Reads a tiktoken file: per line a token in base64 and its rank, which is also its id. Two
// adjacent symbols merge if their joined bytes are a token, lowest rank first. Token texts use
// byte_map.h's alphabet. Refuses ranks other than 0, 1, 2, … and files without a token for every
// byte.
Result<std::unique_ptr<const Model>> make_tiktoken_bpe(std::string_view file,
                                                       const std::string& where);

}  // namespace valora::text
