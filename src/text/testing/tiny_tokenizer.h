// A byte-level tokenizer.json with 256 bytes, a few merges and two special tokens, for tests to
// load or damage.
#pragma once

#include <memory>
#include <string>

#include "text/byte_map.h"
#include "text/tokenizer.h"

namespace valora::text {

inline Json added_token_json(int32_t id, const std::string& content, bool special) {
  return {{"id", id},        {"content", content},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", !special}, {"special", special}};
}

// Ids: the byte's value, then "ab" 256, "abc" 257, "he" 258, "<|im_start|>" 259, "<|im_end|>" 260.
inline Json tiny_tokenizer_json() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[std::string(byte_to_text(static_cast<uint8_t>(byte)))] = byte;
  vocab["ab"] = 256;
  vocab["abc"] = 257;
  vocab["he"] = 258;
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {added_token_json(259, "<|im_start|>", true), added_token_json(260, "<|im_end|>", true)}},
      {"normalizer", {{"type", "NFC"}}},
      {"pre_tokenizer", byte_level},
      {"post_processor", byte_level},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", ""},
        {"end_of_word_suffix", ""},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", {"a b", "ab c", "h e"}}}}};
}

inline std::shared_ptr<const Tokenizer> tiny_tokenizer() {
  return Tokenizer::from_json(tiny_tokenizer_json(), "tiny").value();
}

}  // namespace valora::text
