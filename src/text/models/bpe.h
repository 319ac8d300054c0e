// Model "BPE": a piece starts as its characters; the neighbours of the lowest merge rank merge first.
#pragma once

#include "text/models/merge_table.h"
#include "text/models/model.h"
#include "text/models/vocabulary.h"
#include "text/models/word_cache.h"

namespace valora::text {

struct BpeOptions {
  std::optional<int32_t> unk_id;  // of characters without a token; without it they are dropped
  bool fuse_unk = false;          // a run of unknown characters is one token
  bool ignore_merges = false;     // a piece that is a token is taken as it is
};

class Bpe final : public Model {
 public:
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options)
      : vocabulary_(std::move(vocabulary)), merges_(std::move(merges)), options_(options) {}

  void tokenize(std::string_view piece, std::vector<int32_t>& ids) const override;
  int32_t token_count() const override { return vocabulary_.size(); }
  int32_t max_id() const override { return vocabulary_.max_id(); }
  std::optional<int32_t> token_to_id(std::string_view token) const override { return vocabulary_.find(token); }
  const std::string* id_to_token(int32_t id) const override { return vocabulary_.token(id); }

 private:
  std::vector<int32_t> character_ids(std::string_view piece) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  BpeOptions options_;
  mutable WordCache cache_;
};

Result<std::unique_ptr<const Model>> make_bpe(const Json& json, const std::string& where);

}  // namespace valora::text
