// Arguments and table of the attention kernels for an 8-bit KV cache (byte_layout.h). Each call
// runs on one thread.
#pragma once

#include <cstdint>

#include "kernels/cpu/attention/byte_layout.h"

namespace valora::kernels {

// Keys and values of one head: whole blocks of tokens.
struct ByteRun {
  const uint8_t* const* heads = nullptr;  // per block
  int64_t blocks = 0;
  // Per block: a head to be read later, whose keys are prefetched into L2. Null: no prefetch.
  const uint8_t* const* fetch = nullptr;
  ByteHead form;
};

// scores[row, key] = scale of the row · scale of the key · Σ q[row, i] · number_of(key[key, i]), in
// fp32. Computes whole blocks; the scores of keys that were never written are undefined.
struct ByteScores {
  // int16 or float: [rows, 2 * form.key_pairs()] with a row stride of ldq. Padding is zero.
  const void* q = nullptr;
  int64_t rows = 0;
  int64_t ldq = 0;
  const float* scales = nullptr;  // [rows]
  ByteRun run;
  float* scores = nullptr;
  int64_t ld = 0;
};

// sums[row, i] += scale of the row · Σ_key weights[row, key] · number_of(value[key, i]). The
// weights already include the scales of the values.
struct ByteValueSum {
  // int16 (non-negative) or float: whole blocks of keys with a row stride of ldw. The weights of
  // keys that were never written must be zero.
  const void* weights = nullptr;
  int64_t rows = 0;
  int64_t ldw = 0;
  const float* scales = nullptr;  // [rows]
  ByteRun run;
  float* sums = nullptr;  // [rows, panels_of(dim) * kPanelOutputs]
};

// The most keys whose products with 15-bit weights fit an int32 sum.
inline constexpr int64_t kMostIntegerKeys = 512;

// The kernels of one format and instruction set.
struct ByteFormatKernels {
  // q and weights are int16. Only for kInt8, and only where this is faster than floats; otherwise
  // null.
  void (*integer_scores)(const ByteScores& scores);
  void (*add_integer_values)(const ByteValueSum& sum);
  // q and weights are float.
  void (*scores)(const ByteScores& scores);
  void (*add_values)(const ByteValueSum& sum);
  // Decodes pairs of inputs of 16 outputs to panels (product/panels.h). Both element types
  // represent the numbers exactly.
  void (*decode_floats)(const uint8_t* bytes, int64_t pairs, float* panels);
  void (*decode_bf16)(const uint8_t* bytes, int64_t pairs, bf16* panels);
};

struct ByteAttentionKernels {
  ByteFormatKernels int8, fp8;
};

extern const ByteAttentionKernels kVnniByteAttention;
extern const ByteAttentionKernels kAvx512ByteAttention;
extern const ByteAttentionKernels kAvx2ByteAttention;
extern const ByteAttentionKernels kPortableByteAttention;

// The kernels for isa().
const ByteFormatKernels& byte_attention(KvFormat format);

}  // namespace valora::kernels
