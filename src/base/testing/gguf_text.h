// Builds the bytes of valid and invalid GGUF files, for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace valora::testing {

// A number as raw bytes, a string with a length prefix.
template <typename T>
std::string gguf_bytes(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
inline std::string gguf_bytes(const std::string& text) {
  return gguf_bytes(uint64_t{text.size()}) + text;
}
inline std::string gguf_bytes(const char* text) { return gguf_bytes(std::string(text)); }

// Metadata entries.
inline std::string gguf_entry(const std::string& key, uint32_t type, const std::string& value) {
  return gguf_bytes(key) + gguf_bytes(type) + value;
}
inline std::string gguf_u32(const std::string& key, uint32_t value) {
  return gguf_entry(key, 4, gguf_bytes(value));
}
inline std::string gguf_f32(const std::string& key, float value) {
  return gguf_entry(key, 6, gguf_bytes(value));
}
inline std::string gguf_flag(const std::string& key, bool value) {
  return gguf_entry(key, 7, std::string(1, value ? '\1' : '\0'));
}
inline std::string gguf_string(const std::string& key, const std::string& value) {
  return gguf_entry(key, 8, gguf_bytes(value));
}
// type: 8 for strings, 5 for int32_t, 6 for float.
template <typename T>
std::string gguf_list(const std::string& key, uint32_t type, const std::vector<T>& values) {
  std::string bytes = gguf_bytes(type) + gguf_bytes(uint64_t{values.size()});
  for (const T& value : values) bytes += gguf_bytes(value);
  return gguf_entry(key, 9, bytes);
}

struct GgufRawTensor {
  std::string name;
  std::vector<uint64_t> sizes;  // contiguous dimension first, as in the file
  uint32_t type = 0;            // 0: F32
  std::string bytes;
};

// A file with these entries and tensors, each aligned to 32 bytes.
inline std::string gguf_text(const std::vector<std::string>& entries,
                             const std::vector<GgufRawTensor>& tensors = {}, uint32_t version = 3) {
  std::string text = "GGUF" + gguf_bytes(version) + gguf_bytes(uint64_t{tensors.size()}) +
                     gguf_bytes(uint64_t{entries.size()});
  for (const std::string& entry : entries) text += entry;
  std::string data;
  for (const GgufRawTensor& tensor : tensors) {
    text += gguf_bytes(tensor.name) + gguf_bytes(static_cast<uint32_t>(tensor.sizes.size()));
    for (const uint64_t size : tensor.sizes) text += gguf_bytes(size);
    text += gguf_bytes(tensor.type) + gguf_bytes(uint64_t{data.size()});
    data += tensor.bytes;
    data.resize((data.size() + 31) / 32 * 32);
  }
  text.resize((text.size() + 31) / 32 * 32);
  return text + data;
}

}  // namespace valora::testing
