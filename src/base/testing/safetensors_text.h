// Builds the bytes of valid and invalid safetensors files, for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace valora::testing {

struct RawTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

template <typename T>
std::string raw_bytes(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline RawTensor f32_tensor(std::vector<int64_t> shape, const std::vector<float>& values) {
  return {"F32", std::move(shape), raw_bytes(values)};
}

// A file with exactly this header and data.
inline std::string safetensors_text(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  std::string text(sizeof size, '\0');
  std::memcpy(text.data(), &size, sizeof size);
  return text + header + data;
}

// A well-formed file. `padding` spaces after the header shift the data out of alignment.
inline std::string safetensors_text(const std::map<std::string, RawTensor>& tensors,
                                    size_t padding = 0) {
  Json header = Json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    data += tensor.bytes;
    header[name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  return safetensors_text(header.dump() + std::string(padding, ' '), data);
}

}  // namespace valora::testing
