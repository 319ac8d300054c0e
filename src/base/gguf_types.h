// The types of values and tensors, as GGUF numbers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/gguf.h"

namespace valora {

// Of values in the metadata.
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

// Bytes of a value of a fixed size; 0: of another type.
size_t gguf_value_size(uint32_t type);

struct GgufTypeEntry {
  uint32_t number;
  GgufType type;
  GgufBlock block;
};
// Of a tensor; null: it is not read.
const GgufTypeEntry* gguf_type(uint32_t number);
// The name of a type that is known but not read; null: it is not known.
const char* other_gguf_type(uint32_t number);

}  // namespace valora
