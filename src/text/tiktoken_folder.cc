#include "text/folder_tokens.h"

#include <array>

#include "base/files/file.h"
#include "text/json_fields.h"
#include "text/word_patterns.h"

namespace valora::text {
namespace {

constexpr int kExtraTokens = 205;

// Qwen-VL's tags, by the configuration keys that name them.
struct Tag {
  const char *argument, *text;
  bool special;
};
constexpr std::array<Tag, 9> kTags{{{"ref_start_tag", "<ref>", false},
                                    {"ref_end_tag", "</ref>", false},
                                    {"box_start_tag", "<box>", false},
                                    {"box_end_tag", "</box>", false},
                                    {"quad_start_tag", "<quad>", false},
                                    {"quad_end_tag", "</quad>", false},
                                    {"image_start_tag", "<img>", true},
                                    {"image_end_tag", "</img>", true},
                                    {"image_pad_tag", "<imgpad>", true}}};

// Matched in normalized text, as tiktoken does. Ids follow the vocabulary.
Json added(const std::string& text, bool special) {
  return {{"id", 0},         {"content", text},    {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", true}, {"special", special}};
}

Result<Json> optional_object(const std::string& path) {
  if (!file_exists(path)) return Json(Json::object());
  VALORA_TRY(json, read_json_file(path));
  if (!json.is_object()) return refuse(path, "must be an object");
  return json;
}

Status check_tags(const std::string& dir) {
  const std::string path = dir + "/tokenizer_config.json";
  VALORA_TRY(config, optional_object(path));
  for (const Tag& tag : kTags) {
    VALORA_TRY(text, field_or<std::string>(config, path, tag.argument, tag.text));
    if (text != tag.text)
      return refuse(path, in_quotes(tag.argument) + " must be " + in_quotes(tag.text));
  }
  return {};
}

}  // namespace

Result<Json> tiktoken_parts(const std::string& dir) {
  Json tokens = Json::array();
  for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"})
    tokens.push_back(added(text, true));
  for (int i = 0; i < kExtraTokens; ++i)
    tokens.push_back(added("<|extra_" + std::to_string(i) + "|>", true));
  VALORA_TRY(config, optional_object(dir + "/config.json"));
  if (const auto visual = config.find("visual"); visual != config.end() && !visual->is_null()) {
    VALORA_CHECK(check_tags(dir));
    for (const Tag& tag : kTags) tokens.push_back(added(tag.text, tag.special));
  }
  const Json words = {{"type", "Split"},
                      {"pattern", {{"Regex", kQwenWords}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return Json{{"normalizer", {{"type", "NFC"}}},
              {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {words, bytes}}}},
              {"decoder", {{"type", "ByteLevel"}}},
              {"added_tokens", std::move(tokens)}};
}

}  // namespace valora::text
