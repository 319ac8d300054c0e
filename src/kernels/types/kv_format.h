// How the KV cache stores values, on all devices.
#pragma once

#include <cstdint>

namespace valora::kernels {

// kPlain: in the data type of the activations. The others: in 8 bits, with one bf16 scale for the
// key and one for the value of each token and head.
//
//   kInt8  x ≈ q · scale, q = -127 … 127, scale = the largest magnitude / 127
//   kFp8   x ≈ q / 256 · scale, q the numbers of e4m3 without its NaN, scale = the largest
//          magnitude / 1.75: the largest number of e4m3 is 448
enum class KvFormat : uint8_t { kPlain, kInt8, kFp8 };

constexpr bool in_bytes(KvFormat format) { return format != KvFormat::kPlain; }

}  // namespace valora::kernels
