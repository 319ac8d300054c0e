// The types of values and tensors with their numbers in GGUF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/tensors/gguf.h"

namespace valora {

// Types of metadata values.
namespace gguf {
enum : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32Value = 6,
  kFlag = 7,
  kText = kGgufText,
  kList = 9,
  kU64 = 10,
  kI64 = 11,
  kF64Value = 12
};
}  // namespace gguf

template <typename T>
T gguf_load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Size of a value in bytes; 0 if the type has no fixed size.
size_t gguf_value_size(uint32_t type);

struct GgufTypeEntry {
  uint32_t number;
  GgufType type;
  GgufBlock block;
};
// The entry of a tensor type; null if it is not supported.
const GgufTypeEntry* gguf_type(uint32_t number);
// The name of a known but unsupported type; null if the type is unknown.
const char* other_gguf_type(uint32_t number);

}  // namespace valora
