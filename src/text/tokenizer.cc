#include "text/tokenizer.h"

#include <algorithm>

#include "base/digest.h"
#include "base/files/file.h"
#include "base/log/log.h"
#include "base/tensors/gguf.h"
#include "base/tensors/gguf_files.h"
#include "base/text/unicode.h"
#include "text/added_tokens.h"
#include "text/chat/content_marks.h"
#include "text/chat/mistral_words.h"
#include "text/decoders/decoder.h"
#include "text/folder_tokens.h"
#include "text/gguf/tokenizer.h"
#include "text/json_fields.h"
#include "text/models/bpe.h"
#include "text/models/model.h"
#include "text/normalizers/normalizer.h"
#include "text/post_processor.h"
#include "text/pretokenizers/pretokenizer.h"

namespace valora::text {
namespace {

struct Parts {
  std::unique_ptr<const Normalizer> normalizer;      // may be null
  std::unique_ptr<const PreTokenizer> pretokenizer;  // may be null
  std::shared_ptr<const Model> model;
  Digest model_digest;
  Decoder decoder;
  AddedTokens added;
  PostProcessor post_processor;
};

class HuggingFaceTokenizer final : public Tokenizer {
 public:
  explicit HuggingFaceTokenizer(Parts parts)
      : parts_(std::move(parts)),
        vocab_size_(std::max(parts_.model->max_id(), parts_.added.max_id()) + 1),
        bytes_(vocab_size_),
        special_(vocab_size_) {
    for (int32_t id = 0; id < vocab_size_; ++id) {
      const std::string* token = text_of(id);
      if (token == nullptr) continue;
      bytes_[id] = parts_.decoder.bytes(*token);
      special_[id] = parts_.added.is_special(*token);
    }
  }

  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens,
                              std::string_view mark) const override {
    if (!is_valid_utf8(text)) return encode(to_valid_utf8(text), add_special_tokens, mark);
    std::vector<int32_t> ids;
    const PostProcessor& around = parts_.post_processor;
    if (add_special_tokens) ids = around.prefix;
    for (const Segment& segment : parts_.added.split_raw(text)) {
      if (segment.id)
        ids.push_back(*segment.id);
      else
        encode_raw(segment.text, segment.text.data() == text.data(), mark, ids);
    }
    if (add_special_tokens) ids.insert(ids.end(), around.suffix.begin(), around.suffix.end());
    return ids;
  }

  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const override {
    std::string text;
    DecodeStream stream(parts_.decoder);
    for (const int32_t id : ids)
      if (const std::string* token = text_of(id);
          token != nullptr && !(skip_special_tokens && is_special(id)))
        text += stream.push(*token);
    return text += stream.finish();
  }

  int32_t vocab_size() const override { return vocab_size_; }

  std::optional<int32_t> token_to_id(std::string_view token) const override {
    const auto id = parts_.added.token_to_id(token);
    return id ? id : parts_.model->token_to_id(token);
  }

  const std::string* token_text(int32_t id) const override { return text_of(id); }

  const std::string& token_bytes(int32_t id) const override {
    static const std::string kUnknown;
    return in_vocabulary(id) ? bytes_[id] : kUnknown;
  }

  bool is_special(int32_t id) const override { return in_vocabulary(id) && special_[id]; }

  bool is_added(int32_t id) const override { return parts_.added.find(id) != nullptr; }

  std::vector<int32_t> added_ids() const override {
    std::vector<int32_t> ids;
    for (const auto& [id, token] : parts_.added.tokens()) ids.push_back(id);
    return ids;
  }

  const Decoder& decoder() const override { return parts_.decoder; }

  // The model if it has this digest, otherwise null.
  std::shared_ptr<const Model> model_of(const Digest& digest) const {
    return digest == parts_.model_digest ? parts_.model : nullptr;
  }

 private:
  bool in_vocabulary(int32_t id) const { return id >= 0 && id < vocab_size_; }

  const std::string* text_of(int32_t id) const {
    const AddedToken* token = parts_.added.find(id);
    return token ? &token->content : parts_.model->id_to_token(id);
  }

  void encode_raw(std::string_view text, bool begins_sequence, std::string_view mark,
                  std::vector<int32_t>& ids) const {
    // A template may have cut off the character before a mark. If only marks remain, nothing must
    // be encoded, not even text that a normalizer would prepend.
    while (!mark.empty() && text.starts_with(mark)) text.remove_prefix(mark.size());
    if (text.empty()) return;
    NormalizedText normalized{std::string(text),
                              begins_sequence ? decode_utf8(text).length : size_t{0}};
    if (parts_.normalizer) parts_.normalizer->apply(normalized);
    const std::string_view whole = normalized.text;
    for (const Segment& segment : parts_.added.split_normalized(whole)) {
      const auto begin = static_cast<size_t>(segment.text.data() - whole.data());
      if (segment.id)
        ids.push_back(*segment.id);
      else
        encode_normalized(without_marks(segment.text, mark),
                          normalized.head - std::min(normalized.head, begin), ids);
    }
  }

  void encode_normalized(std::string text, size_t head, std::vector<int32_t>& ids) const {
    const size_t size = text.size();
    Pieces pieces{std::move(text), {{0, size}}, head};
    if (parts_.pretokenizer) parts_.pretokenizer->apply(pieces);
    for (size_t i = 0; i < pieces.spans.size(); ++i) parts_.model->tokenize(pieces[i], ids);
  }

  Parts parts_;
  int32_t vocab_size_;
  std::vector<std::string> bytes_;
  std::vector<bool> special_;
};

const Json& part(const Json& json, const char* key) {
  static const Json kNull;
  const auto it = json.find(key);
  return it == json.end() ? kNull : *it;
}

// Only a warning: truncation and padding are up to the caller, and transformers switches both off,
// too.
void warn_of_lengths(const Json& json, const std::string& what) {
  for (const char* key : {"truncation", "padding"})
    if (!part(json, key).is_null())
      spdlog::warn("{}: \"{}\" is not applied: prompts keep their length", what, key);
}

// Independent of the format in which merges are written.
Digest digest_of_model(const Json& model) {
  DigestBuilder digest;
  for (const auto& [key, value] : model.items()) {
    digest.add(key);
    if (key == "vocab" && value.is_object()) {
      for (const auto& [text, id] : value.items()) digest.add(text).add(id.dump());
    } else if (key == "merges" && value.is_array()) {
      for (const Json& merge : value)
        digest.add(merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                           merge[1].is_string()
                       ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                   : merge.is_string() ? merge.get<std::string>()
                                       : merge.dump());
    } else {
      digest.add(value.dump());
    }
  }
  return digest.finish();
}

Result<std::shared_ptr<const Model>> model_like(const Json& json, const Digest& digest,
                                                const Tokenizer* other) {
  if (const auto* known = dynamic_cast<const HuggingFaceTokenizer*>(other))
    if (auto model = known->model_of(digest)) return model;
  VALORA_TRY(model, make_model(json, "model"));
  return std::shared_ptr<const Model>(std::move(model));
}

// Reads everything but the model, whose digest is given.
Result<Parts> read_parts_around(std::shared_ptr<const Model> model, const Digest& digest,
                                const Json& json, const std::vector<AddedToken>& more) {
  VALORA_TRY(normalizer, make_normalizer(part(json, "normalizer"), "normalizer"));
  VALORA_TRY(pretokenizer, make_pretokenizer(part(json, "pre_tokenizer"), "pre_tokenizer"));
  VALORA_TRY(decoder, Decoder::read(part(json, "decoder"), "decoder"));
  VALORA_TRY(added, AddedTokens::read(part(json, "added_tokens"), "added_tokens", *model,
                                      normalizer.get(), more));
  const int32_t max_id = std::max(model->max_id(), added.max_id());
  VALORA_TRY(post_processor,
             PostProcessor::read(part(json, "post_processor"), "post_processor", max_id));
  return Parts{std::move(normalizer), std::move(pretokenizer), std::move(model),         digest,
               std::move(decoder),    std::move(added),        std::move(post_processor)};
}

Result<Parts> read_parts(const Json& json, const std::vector<AddedToken>& more,
                         const Tokenizer* other) {
  VALORA_CHECK(check_fields(json, "tokenizer",
                            {"version", "truncation", "padding", "added_tokens", "normalizer",
                             "pre_tokenizer", "post_processor", "decoder", "model"}));
  VALORA_TRY(version, field<std::string>(json, "tokenizer", "version"));
  if (version != "1.0")
    return refuse("tokenizer", "version " + in_quotes(version) + " is not supported");
  const Digest digest = digest_of_model(part(json, "model"));
  VALORA_TRY(model, model_like(part(json, "model"), digest, other));
  return read_parts_around(std::move(model), digest, json, more);
}

// more: additional added tokens.
Result<std::shared_ptr<const Tokenizer>> make_tokenizer(const Json& json, const std::string& what,
                                                        const std::vector<AddedToken>& more,
                                                        const Tokenizer* other = nullptr) {
  auto parts = read_parts(json, more, other);
  if (!parts.ok()) return Error{parts.error().code, what + ": " + parts.error().message, what};
  warn_of_lengths(json, what);
  if (const std::string& renumbered = parts->added.renumbered(); !renumbered.empty())
    spdlog::warn("{}: {}, the next free one, as in transformers", what, renumbered);
  return std::shared_ptr<const Tokenizer>(
      std::make_shared<HuggingFaceTokenizer>(std::move(*parts)));
}

constexpr size_t kMaxTiktokenBytes = size_t{64} << 20;

Result<std::shared_ptr<const Tokenizer>> load_tiktoken(const std::string& dir,
                                                       const std::string& path) {
  VALORA_TRY(file, read_file(path, kMaxTiktokenBytes));
  VALORA_TRY(model, make_tiktoken_bpe(file, path));
  VALORA_TRY(around, tiktoken_parts(dir));
  const Digest digest = DigestBuilder().add(std::string_view(file)).finish();
  VALORA_TRY(parts, read_parts_around(std::move(model), digest, around, {}));
  return std::shared_ptr<const Tokenizer>(std::make_shared<HuggingFaceTokenizer>(std::move(parts)));
}

// Names the file that the folder has instead of tokenizer.json.
Error no_tokenizer(const InputFolder& folder) {
  const std::string path = folder.path_of("tokenizer.json");
  if (folder.has("tekken.json"))
    return unprocessable(
        folder.path_of("tekken.json") +
            " is Mistral's own form of the tokenizer, which is not read: take the model's folder "
            "in "
            "transformers' format, or write tokenizer.json with convert_tekken_tokenizer of "
            "transformers.integrations.mistral and save_pretrained",
        path);
  for (const char* name : {"tokenizer.model", "spiece.model", "vocab.json", "vocab.txt"})
    if (folder.has(name))
      return not_found(path + " does not exist, and " + name +
                           " alone is not read: write it with transformers' "
                           "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)",
                       path);
  return not_found(path + " does not exist", path);
}

}  // namespace

// Includes the added tokens listed in the folder's other files.
Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const FolderPath& dir,
                                                         const Tokenizer* other,
                                                         const std::string& gguf_token) {
  if (const auto gguf = dir.root.empty() ? find_gguf(dir.path) : std::nullopt) {
    VALORA_TRY(file, Gguf::open(*gguf));
    VALORA_TRY(json, gguf_tokenizer(file->metadata(), gguf_token));
    return make_tokenizer(json, *gguf, {}, other);
  }
  const std::string path = dir.path + "/tokenizer.json", ranks = dir.path + "/" + kTiktokenFile;
  if (!file_exists(path) && file_exists(ranks)) return load_tiktoken(dir.path, ranks);
  const auto folder = InputFolder::open(dir);
  if (!folder.ok()) return not_found(path + " does not exist", path);
  if (!folder->has("tokenizer.json")) return no_tokenizer(*folder);
  VALORA_TRY(json, read_json(*folder, "tokenizer.json", {.unique_keys = true}));
  VALORA_CHECK(mend_mistral_words(*folder, json));
  VALORA_TRY(more, read_folder_tokens(*folder, json));
  return make_tokenizer(json, path, more, other);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(const Json& json,
                                                              const std::string& what) {
  return make_tokenizer(json, what, {});
}

}  // namespace valora::text
