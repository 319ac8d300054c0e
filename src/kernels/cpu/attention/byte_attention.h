// Arguments and table of the attention kernels for an 8-bit KV cache (byte_layout.h). Each call
// runs on one thread.
#pragma once

#include <cstdint>

#include "kernels/cpu/attention/byte_layout.h"

namespace valora::kernels {

// How the rows' inputs are coded, queries and weights of keys: quad by quad, without gaps.
enum class RowCode : uint8_t {
  kFloats,  // float
  kBf16,    // bf16, a quad in the order 0, 2, 1, 3
  kWords,   // int16, in the same order
  // Queries are int8. Weights are unsigned 16 bits: the upper bytes of a quad, then its lower ones.
  kBytes,
};
constexpr int64_t weight_quad_bytes(RowCode code) { return code == RowCode::kFloats ? 16 : 8; }
constexpr int64_t query_quad_bytes(RowCode code) {
  return code == RowCode::kBytes ? 4 : weight_quad_bytes(code);
}

// Keys and values of one head: whole blocks of tokens.
struct ByteRun {
  const uint8_t* const* heads = nullptr;  // per block
  int64_t blocks = 0;
  // Per block: a head to be read later, which is prefetched into L2, keys by scores and values by
  // sums.
  const uint8_t* const* fetch = nullptr;
  ByteHead form;
};

inline constexpr int64_t kMostRegisterRows = 16;

// The most keys whose products with 16-bit weights fit an int32 sum.
inline constexpr int64_t kMostIntegerKeys = 256;

// Codes a row of queries. kFloats and kBf16 keep its numbers (bf16 ones), kWords rounds to 15 bits
// of the largest magnitude, or fewer for heads of more than 516, and kBytes to 8 bits: an error of
// at most 1/254 of the largest magnitude.
struct ByteQuery {
  const float* x = nullptr;  // [width]
  int64_t width = 0;         // a multiple of kPanelOutputs
  float most_word = 0;       // kWords: the largest magnitude to use
  uint8_t* coded = nullptr;  // out
  float scale = 1;           // out: x ≈ coded · scale; NaN if x has a NaN or an infinity
  int32_t start = 0;         // out: the start of the row's sums
};

// scores[row, key] = scale of the row · scale of the key · Σ q[row, i] · number_of(key[key, i]), in
// fp32. Computes whole blocks; the scores of keys that were never written are undefined.
struct ByteScores {
  const uint8_t* q = nullptr;  // coded
  int64_t rows = 0;
  int64_t ldq = 0;                  // bytes
  const float* scales = nullptr;    // [rows]
  const int32_t* starts = nullptr;  // [rows]
  ByteRun run;
  float* scores = nullptr;
  int64_t ld = 0;
};

// One step of the online softmax for one row, which attends to keys [hidden, seen): updates the
// maximum and the sum of the weights exp(scale · score - row_max), and codes these weights times
// the scales of the values. Weights of other keys are zero, whatever their scores and scales are.
// kFloats computes each weight within 2 ulp, other codes within 2^-18 of it before they round it:
// to bf16, or to 15 (kWords) or 16 bits (kBytes) of the largest.
struct ByteSoftmax {
  float* scores = nullptr;  // [width], overwritten
  int64_t hidden = 0, seen = 0;
  int64_t width = 0;                    // a multiple of kPanelOutputs
  const float* value_scales = nullptr;  // [width]
  float scale = 1;
  float row_max = 0;           // in, out: maximum of scale · score so far
  float row_sum = 0;           // in, out: sum of the weights so far, before they are rounded
  float rescale = 1;           // out: factor to apply to the value sums of earlier steps
  uint8_t* weights = nullptr;  // out: coded
  float weight_scale = 1;      // out: the scale of the coded weights
};

// sums[row, i] += scale of the row · Σ_key weights[row, key] · number_of(value[key, i]). The
// weights already include the scales of the values.
struct ByteValueSum {
  const uint8_t* weights = nullptr;  // coded: whole blocks of keys
  int64_t rows = 0;
  int64_t ldw = 0;                // bytes
  const float* scales = nullptr;  // [rows]
  ByteRun run;
  float* sums = nullptr;  // [rows, panels_of(dim) * kPanelOutputs]
};

// The kernels of few rows: one way to code and multiply.
struct ByteArithmetic {
  RowCode code;
  void (*code_queries)(ByteQuery* rows, int64_t count);
  void (*scores)(const ByteScores& scores);
  void (*weigh)(ByteSoftmax* rows, int64_t count);
  void (*add_values)(const ByteValueSum& sum);
};

// The kernels of one format and instruction set.
struct ByteFormatKernels {
  ByteArithmetic of_bf16, of_float;  // for rows of bf16 and fp32; fp32 is not rounded
  // Decodes quads to panels (product/panels.h). Both element types represent the numbers exactly.
  void (*decode_floats)(const uint8_t* bytes, int64_t quads, float* panels);
  void (*decode_bf16)(const uint8_t* bytes, int64_t quads, bf16* panels);
};

struct ByteAttentionKernels {
  ByteFormatKernels int8, fp8;
};

// The kernels for isa().
const ByteFormatKernels& byte_attention(KvFormat format);

}  // namespace valora::kernels
