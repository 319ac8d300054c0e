// Metadata and tensors of a small GGUF model for tests: one layer of width 32 with four heads, and
// two tokens.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/testing/gguf_text.h"

namespace valora::models::testing {

inline valora::testing::GgufRawTensor floats_of(const std::string& name,
                                                std::vector<uint64_t> sizes,
                                                const std::vector<float>& values) {
  std::string bytes(values.size() * 4, '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, std::move(sizes), 0, std::move(bytes)};
}

// Q8_0 rows of one block each: integer = row index + input index.
inline valora::testing::GgufRawTensor integer_rows(const std::string& name, uint64_t rows,
                                                   uint16_t scale = 0x3C00 /* 1 */) {
  std::string bytes;
  for (uint64_t row = 0; row < rows; ++row) {
    bytes += valora::testing::gguf_bytes(scale);
    for (int64_t i = 0; i < 32; ++i) bytes += static_cast<char>(row + static_cast<uint64_t>(i));
  }
  return {name, {32, rows}, 8, std::move(bytes)};
}

inline std::vector<std::string> gguf_settings(const std::string& architecture,
                                              std::vector<std::string> more = {}) {
  std::vector<std::string> entries{
      valora::testing::gguf_string("general.architecture", architecture)};
  for (const auto& [key, value] : {std::pair("context_length", 128),
                                   {"embedding_length", 32},
                                   {"block_count", 1},
                                   {"feed_forward_length", 64},
                                   {"attention.head_count", 4}})
    entries.push_back(
        valora::testing::gguf_u32(architecture + "." + key, static_cast<uint32_t>(value)));
  entries.push_back(
      valora::testing::gguf_f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f));
  entries.push_back(valora::testing::gguf_string("tokenizer.ggml.model", "gpt2"));
  entries.push_back(
      valora::testing::gguf_list<std::string>("tokenizer.ggml.tokens", 8, {"a", "b"}));
  entries.push_back(valora::testing::gguf_u32("tokenizer.ggml.eos_token_id", 1));
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

}  // namespace valora::models::testing
