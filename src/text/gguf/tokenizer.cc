#include "text/gguf/tokenizer.h"

#include <cmath>

#include "base/text/unicode.h"
#include "text/gguf/tokens.h"
#include "text/gguf/words.h"
#include "text/json_fields.h"

namespace valora::text {
namespace {

// Bounds the pairs of one token in a vocabulary with scores.
constexpr size_t kMostTokenBytes = 1 << 10;

// The vocabulary; an error if two tokens have the same text.
Result<Json> vocabulary_of(const GgufMetadata& metadata, const GgufTokens& tokens) {
  Json vocabulary = Json::object();
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    // Unused ids, whose names exist only in GGUF files.
    if (!tokens.scored && tokens.kinds[id] == GgufTokenKind::kUnused) continue;
    const auto [it, added] = vocabulary.emplace(std::string(tokens.texts[id]), id);
    if (!added)
      return metadata.wrong(gguf_key("tokens"), "has the tokens " + it->dump() + " and " +
                                                    std::to_string(id) + " with one text");
  }
  return vocabulary;
}

Json added_token(size_t id, std::string_view text, bool special) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

Json added_tokens(const GgufTokens& tokens) {
  Json added = Json::array();
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    const GgufTokenKind kind = tokens.kinds[id];
    const bool special = kind == GgufTokenKind::kControl || kind == GgufTokenKind::kUnknown;
    if (!special && kind != GgufTokenKind::kUserDefined) continue;
    added.push_back(added_token(id, tokens.texts[id], special));
  }
  return added;
}

// The BOS and EOS tokens added to a text; null if there are none.
Result<Json> post_processor(const GgufMetadata& metadata, const GgufTokens& tokens, bool adds_bos) {
  VALORA_TRY(bos, metadata.flag(gguf_key("add_bos_token"), adds_bos));
  VALORA_TRY(eos, metadata.flag(gguf_key("add_eos_token"), false));
  VALORA_TRY(sep, metadata.flag(gguf_key("add_sep_token"), false));
  if (sep) return metadata.wrong(gguf_key("add_sep_token"), "is not supported");
  Json single = Json::array(), specials = Json::object();
  const auto add = [&](const char* name, bool adds) -> Status {
    if (!adds) return {};
    VALORA_TRY(id, gguf_token_id(metadata, gguf_key(name), tokens.texts.size()));
    if (!id) return metadata.wrong(gguf_key(name), "is missing, which texts begin or end with");
    const std::string text(tokens.texts[static_cast<size_t>(*id)]);
    single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
    specials[text] = {{"id", text}, {"ids", {*id}}, {"tokens", {text}}};
    return {};
  };
  VALORA_CHECK(add("bos_token_id", bos));
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  VALORA_CHECK(add("eos_token_id", eos));
  if (single.size() == 1) return Json();
  return Json{{"type", "TemplateProcessing"},
              {"single", std::move(single)},
              {"pair", Json::array()},
              {"special_tokens", std::move(specials)}};
}

Json bpe_model(Json vocabulary, Json merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", ""},
          {"end_of_word_suffix", ""},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

Result<Json> byte_level_tokenizer(const GgufMetadata& metadata, const GgufTokens& tokens) {
  VALORA_TRY(rule, gguf_word_rule(metadata));
  VALORA_TRY(vocabulary, vocabulary_of(metadata, tokens));
  VALORA_TRY(pairs, metadata.texts(gguf_key("merges")));
  Json merges = Json::array();
  for (const std::string_view pair : pairs) {
    const size_t space = pair.find(' ', 1);
    if (space == pair.npos || !is_valid_utf8(pair))
      return metadata.wrong(gguf_key("merges"),
                            "must be pairs of tokens with a space between them");
    merges.push_back({pair.substr(0, space), pair.substr(space + 1)});
  }
  VALORA_TRY(around, post_processor(metadata, tokens, rule->adds_bos));
  Json model = bpe_model(std::move(vocabulary), std::move(merges));
  model["ignore_merges"] = rule->whole_words;
  return Json{{"version", "1.0"},
              {"added_tokens", added_tokens(tokens)},
              {"normalizer", rule->composed ? Json{{"type", "NFC"}} : Json()},
              {"pre_tokenizer", pre_tokenizer_part(*rule)},
              {"post_processor", std::move(around)},
              {"decoder", byte_level_part(true)},
              {"model", std::move(model)}};
}

// Restores tokens that are runs of "▁" in the original: the converter writes them as spaces.
void restore_spaces(GgufTokens& tokens, std::vector<std::string>& memory) {
  memory.reserve(tokens.texts.size());
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    std::string_view& text = tokens.texts[id];
    if (tokens.kinds[id] != GgufTokenKind::kUserDefined || text.empty() ||
        text.find_first_not_of(' ') != text.npos)
      continue;
    std::string& restored = memory.emplace_back();
    for (size_t i = 0; i < text.size(); ++i) restored += "▁";
    text = restored;
  }
}

Status refuse_other_normalizers(const GgufMetadata& metadata) {
  if (metadata.has(gguf_key("precompiled_charsmap"))) {
    VALORA_TRY(map, metadata.numbers(gguf_key("precompiled_charsmap")));
    if (!map.empty()) return metadata.wrong(gguf_key("precompiled_charsmap"), "is not supported");
  }
  VALORA_TRY(removes, metadata.flag(gguf_key("remove_extra_whitespaces"), false));
  if (removes) return metadata.wrong(gguf_key("remove_extra_whitespaces"), "is not supported");
  return {};
}

Result<std::vector<ScoredToken>> scored_tokens(const GgufMetadata& metadata,
                                               const GgufTokens& tokens) {
  VALORA_TRY(scores, metadata.numbers(gguf_key("scores")));
  VALORA_TRY(architecture, metadata.text("general.architecture", ""));
  // Gemma's scores do not follow the order of its merges; its ids do.
  const bool by_id = architecture.starts_with("gemma");
  if (by_id) scores.assign(tokens.texts.size(), 0);
  if (scores.size() != tokens.texts.size())
    return metadata.wrong(gguf_key("scores"), "must have a number for each token");
  std::vector<ScoredToken> scored;
  for (size_t id = 0; id < scores.size(); ++id) {
    const GgufTokenKind kind = tokens.kinds[id];
    if (by_id) scores[id] = -static_cast<double>(id);
    if (!std::isfinite(scores[id])) return metadata.wrong(gguf_key("scores"), "must be finite");
    if (tokens.texts[id].size() > kMostTokenBytes)
      return metadata.wrong(gguf_key("tokens"), "has the token " + std::to_string(id) +
                                                    ", which is longer than 1024 bytes");
    // SentencePiece has no scores for user-defined tokens.
    const bool own = kind == GgufTokenKind::kUserDefined;
    scored.push_back(
        {tokens.texts[id], own && !by_id ? 0 : scores[id], kind == GgufTokenKind::kNormal || own});
  }
  return scored;
}

Result<Json> scored_tokenizer(const GgufMetadata& metadata, GgufTokens tokens) {
  VALORA_CHECK(refuse_other_normalizers(metadata));
  std::vector<std::string> restored;
  restore_spaces(tokens, restored);
  VALORA_TRY(scored, scored_tokens(metadata, tokens));
  VALORA_TRY(vocabulary, vocabulary_of(metadata, tokens));
  VALORA_TRY(prefix, metadata.flag(gguf_key("add_space_prefix"), true));
  VALORA_TRY(around, post_processor(metadata, tokens, true));
  VALORA_TRY(unknown, gguf_token_id(metadata, gguf_key("unknown_token_id"), tokens.texts.size()));
  Json model = bpe_model(std::move(vocabulary), merges_by_score(scored));
  if (unknown) model["unk_token"] = tokens.texts[static_cast<size_t>(*unknown)];
  model["fuse_unk"] = model["byte_fallback"] = true;
  const auto replace = [](const char* from, const char* to) {
    return Json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  Json normalizers = Json::array(), decoders = Json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
  normalizers.push_back(replace(" ", "▁"));
  decoders = {replace("▁", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return Json{{"version", "1.0"},
              {"added_tokens", added_tokens(tokens)},
              {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
              {"pre_tokenizer", nullptr},
              {"post_processor", std::move(around)},
              {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
              {"model", std::move(model)}};
}

}  // namespace

Result<Json> gguf_tokenizer(const GgufMetadata& metadata, const std::string& more) {
  VALORA_TRY(tokens, read_gguf_tokens(metadata));
  const size_t count = tokens.texts.size();
  VALORA_TRY(json, tokens.scored ? scored_tokenizer(metadata, std::move(tokens))
                                 : byte_level_tokenizer(metadata, tokens));
  if (!more.empty()) json["added_tokens"].push_back(added_token(count, more, true));
  return json;
}

}  // namespace valora::text
