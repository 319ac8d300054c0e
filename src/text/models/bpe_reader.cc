// Reads "model" of type BPE in tokenizer.json.
#include "text/json_fields.h"
#include "text/models/bpe.h"

namespace valora::text {
namespace {

constexpr size_t kMaxMerges = size_t{1} << 22;

struct MergeParts {
  std::string_view left;
  std::string_view right;
};

// "left right" or ["left", "right"].
Result<MergeParts> merge_parts(const Json& merge, const std::string& where) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return MergeParts{merge[0].get_ref<const std::string&>(),
                      merge[1].get_ref<const std::string&>()};
  if (!merge.is_string()) return refuse(where, "must be \"left right\" or [\"left\", \"right\"]");
  const std::string_view text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos)
    return refuse(where, "must be two tokens with one space between them");
  return MergeParts{text.substr(0, space), text.substr(space + 1)};
}

Result<int32_t> merge_token(const Vocabulary& vocabulary, std::string_view token,
                            const std::string& where) {
  const auto id = vocabulary.find(token);
  if (!id) return refuse(where, in_quotes(token) + " is not in the vocabulary");
  return *id;
}

bool is_version_line(const Json& merge) {
  return merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version");
}

Result<MergeTable> read_merges(const Json& json, const std::string& where,
                               const Vocabulary& vocabulary) {
  VALORA_TRY(array, array_field(json, where, "merges", kMaxMerges));
  MergeTable table(array->size());
  int32_t rank = 0;
  for (size_t i = 0; i < array->size(); ++i) {
    if (is_version_line((*array)[i])) continue;
    const std::string merge_where = where + ".merges[" + std::to_string(i) + "]";
    VALORA_TRY(parts, merge_parts((*array)[i], merge_where));
    VALORA_TRY(left, merge_token(vocabulary, parts.left, merge_where));
    VALORA_TRY(right, merge_token(vocabulary, parts.right, merge_where));
    VALORA_TRY(result, merge_token(vocabulary, std::string(parts.left) + std::string(parts.right),
                                   merge_where));
    table.insert(left, right, {rank++, result});
  }
  return table;
}

// Settings of other BPE variants must be off.
Status refuse_other_kinds(const Json& json, const std::string& where) {
  VALORA_TRY(dropout, field_or<double>(json, where, "dropout", 0.0));
  if (dropout != 0.0) return refuse(where, "\"dropout\" is not supported");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    VALORA_TRY(affix, field_or<std::string>(json, where, key, ""));
    if (!affix.empty()) return refuse(where, in_quotes(key) + " is not supported");
  }
  return {};
}

Result<BpeOptions> read_options(const Json& json, const std::string& where,
                                const Vocabulary& vocabulary) {
  BpeOptions options;
  const auto unk = optional_field<std::string>(json, "unk_token");
  if (!unk.ok()) return refuse(where, unk.error().message);
  if (*unk) {
    options.unk_id = vocabulary.find(**unk);
    if (!options.unk_id)
      return refuse(where, "the unk_token " + in_quotes(**unk) + " is not in the vocabulary");
  }
  VALORA_TRY(fuse_unk, field_or<bool>(json, where, "fuse_unk", false));
  VALORA_TRY(ignore_merges, field_or<bool>(json, where, "ignore_merges", false));
  VALORA_TRY(byte_fallback, field_or<bool>(json, where, "byte_fallback", false));
  options.fuse_unk = fuse_unk;
  options.byte_fallback = byte_fallback;
  options.ignore_merges = ignore_merges;
  return options;
}

}  // namespace

Result<std::unique_ptr<const Model>> make_bpe(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(
      json, where,
      {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
       "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
  VALORA_CHECK(refuse_other_kinds(json, where));
  const auto vocab = json.find("vocab");
  if (vocab == json.end()) return refuse(where, "\"vocab\" is missing");
  VALORA_TRY(vocabulary, Vocabulary::read(*vocab, where + ".vocab"));
  VALORA_TRY(merges, read_merges(json, where, vocabulary));
  VALORA_TRY(options, read_options(json, where, vocabulary));
  return std::unique_ptr<const Model>(new Bpe(std::move(vocabulary), std::move(merges), options));
}

}  // namespace valora::text
