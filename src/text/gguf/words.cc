#include "text/gguf/words.h"

#include <algorithm>
#include <array>

#include "text/gguf/tokens.h"
#include "text/json_fields.h"
#include "text/word_patterns.h"

namespace valora::text {
namespace {

constexpr std::array<WordRule, 8> kWordRules{{{"gpt-2", nullptr},
                                              {"smollm", nullptr, true},
                                              {"qwen2", kQwenWords, false, true},
                                              {"deepseek-r1-qwen", kQwenWords, false, true},
                                              {"llama-bpe", kLlama3Words, false, false, true, true},
                                              {"llama3", kLlama3Words, false, false, true, true},
                                              {"llama-v3", kLlama3Words, false, false, true, true},
                                              {"tekken", kTekkenWords, false, false, true, true}}};

}  // namespace

Result<const WordRule*> gguf_word_rule(const GgufMetadata& metadata) {
  VALORA_TRY(name, metadata.text(gguf_key("pre"), ""));
  if (name.empty() || name == "default")
    return metadata.wrong(gguf_key("pre"),
                          "does not say how texts are split into words: convert the model again "
                          "with a newer converter");
  const auto* const found =
      std::ranges::find_if(kWordRules, [&](const WordRule& rule) { return name == rule.name; });
  if (found != kWordRules.end()) return found;
  std::string known;
  for (const WordRule& rule : kWordRules)
    known += (known.empty() ? "" : ", ") + std::string(rule.name);
  return metadata.wrong(gguf_key("pre"),
                        "is " + in_quotes(name) + ", which is not supported, only " + known);
}

Json byte_level_part(bool words) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", words}};
}

Json pre_tokenizer_part(const WordRule& rule) {
  Json parts = Json::array();
  if (rule.digits) parts.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (rule.pattern)
    parts.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", rule.pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  parts.push_back(byte_level_part(rule.pattern == nullptr));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
}

}  // namespace valora::text
