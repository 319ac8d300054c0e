#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cuda/integer_matrix.h"
#include "kernels/types/bf16.h"
#include "kernels/types/packed.h"

namespace valora::kernels::cuda {
namespace {

constexpr int64_t kAlignment = 16, kChunkBytes = 512, kLaneBytes = 16;
constexpr int64_t kLaneInputs = 8;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A chunk has 16 bytes of each lane, of two outputs' inputs.
int64_t chunk_inputs_of(int bits) { return 4 * kLaneBytes / 2 * 8 / bits_of(bits); }

// The byte offset of an output's eight inputs from the first integer.
int64_t place_of(const IntegerMatrix& m, int64_t out, int64_t in) {
  const int64_t chunk_inputs = chunk_inputs_of(m.bits),
                word_bytes = kLaneInputs * bits_of(m.bits) / 8;
  const int64_t row = out % kStripOuts, lane = row / 2 * 4 + in % kStepInputs / kLaneInputs;
  const int64_t chunk = out / kStripOuts * m.chunks + in / chunk_inputs;
  const int64_t word = row % 2 + in % chunk_inputs / kStepInputs * 2;
  return chunk * kChunkBytes + lane * kLaneBytes + word * word_bytes;
}

void write_scale(Dtype dtype, float value, std::byte* to) {
  if (dtype == Dtype::kFloat) {
    std::memcpy(to, &value, sizeof value);
  } else if (dtype == Dtype::kBf16) {
    const auto v = kernels::from_float<kernels::bf16>(value);
    std::memcpy(to, &v, sizeof v);
  } else {
    const __half v = __float2half_rn(value);
    std::memcpy(to, &v, sizeof v);
  }
}

float read_scale(Dtype dtype, const std::byte* from) {
  if (dtype == Dtype::kFloat) {
    float v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  if (dtype == Dtype::kBf16) {
    kernels::bf16 v;
    std::memcpy(&v, from, sizeof v);
    return kernels::to_float(v);
  }
  __half v;
  std::memcpy(&v, from, sizeof v);
  return __half2float(v);
}

uint8_t middle_of(const IntegerMatrix& m) {
  return static_cast<uint8_t>(kernels::middle_of(m.bits));
}

// Packs eight inputs of an output; inputs beyond the matrix get the middle value.
void pack_eight(const IntegerMatrix& m, const uint8_t* values, int64_t out, int64_t in,
                std::byte* to) {
  uint8_t eight[kLaneInputs];
  for (int64_t i = 0; i < kLaneInputs; ++i)
    eight[i] = out < m.n && in + i < m.k ? values[out * m.k + in + i] : middle_of(m);
  with_bits(m.bits, [&](auto bits) {
    constexpr int64_t kWordInputs = Packed<bits>::kWordInputs;
    std::byte* place = to + place_of(m, out, in);
    for (int64_t first = 0; first < kLaneInputs; first += kWordInputs, place += 4) {
      uint32_t word = 0;
      for (int64_t i = 0; i < kWordInputs; ++i)
        word |= uint32_t{eight[first + i]} << Packed<bits>::shift(i);
      std::memcpy(place, &word, sizeof word);
    }
  });
}

// The integer of an output and an input. place: of the output's eight inputs.
int integer_at(const IntegerMatrix& m, const std::byte* place, int64_t input) {
  return with_bits(m.bits, [&](auto bits) {
    constexpr int64_t kWordInputs = Packed<bits>::kWordInputs;
    uint32_t word;
    std::memcpy(&word, place + input % kLaneInputs / kWordInputs * 4, sizeof word);
    return static_cast<int>(unpacked<bits>(word, input % kWordInputs));
  });
}

void pack_groups(const IntegerMatrix& m, const IntegerGroups& groups, int64_t out, std::byte* to) {
  const int64_t count = m.groups, strip = out / kStripOuts;
  const auto size = static_cast<int64_t>(size_of(m.scales));
  for (int64_t g = 0; g < count; ++g) {
    const int64_t at = (strip * count + g) * kStripOuts + out % kStripOuts, from = out * count + g;
    const bool is = out < m.n;
    write_scale(m.scales, is ? groups.scales[from] : 0, to + m.scales_at + at * size);
    if (m.zeros) to[m.zeros_at + at] = std::byte{is ? groups.zeros[from] : middle_of(m)};
    const float least = m.minimums && is ? groups.minimums[from] : 0;
    if (m.minimums)
      std::memcpy(to + m.zeros_at + at * static_cast<int64_t>(sizeof least), &least, sizeof least);
  }
}

}  // namespace

IntegerMatrix integer_matrix(int32_t n, int32_t k, int32_t bits, int32_t group, Dtype scales,
                             bool zeros, bool minimums) {
  IntegerMatrix m{.n = n,
                  .k = k,
                  .group = group,
                  .bits = bits,
                  .scales = scales,
                  .zeros = zeros,
                  .minimums = minimums};
  m.strips = (n + kStripOuts - 1) / kStripOuts;
  m.chunks =
      static_cast<int32_t>((k + kPadInputs - 1) / kPadInputs * kPadInputs / chunk_inputs_of(bits));
  m.groups = (k + group - 1) / group;
  if (m.groups <= 1)
    m.group_shift = 31;
  else if (std::has_single_bit(static_cast<uint32_t>(group)))
    m.group_shift = std::countr_zero(static_cast<uint32_t>(group));
  const int64_t parts = int64_t{m.strips} * m.groups * kStripOuts;
  m.scales_at = int64_t{m.strips} * m.chunks * kChunkBytes;
  m.zeros_at = m.scales_at + aligned(parts * static_cast<int64_t>(size_of(scales)));
  m.bytes = m.zeros_at + aligned(minimums ? parts * static_cast<int64_t>(sizeof(float))
                                 : zeros  ? parts
                                          : 0);
  return m;
}

Dtype dtype_of_scales(const float* scales, int64_t count) {
  const auto fit = [&](auto rounded) {
    return std::all_of(scales, scales + count, [&](float s) { return rounded(s) == s; });
  };
  if (fit([](float s) { return kernels::to_float(kernels::from_float<kernels::bf16>(s)); }))
    return Dtype::kBf16;
  return fit([](float s) { return __half2float(__float2half_rn(s)); }) ? Dtype::kFp16
                                                                       : Dtype::kFloat;
}

void pack_matrix(const IntegerMatrix& m, const uint8_t* values, const IntegerGroups& groups,
                 std::byte* to, const ParallelFor& parallel) {
  const int64_t inputs = (int64_t{m.k} + kPadInputs - 1) / kPadInputs * kPadInputs;
  parallel(0, int64_t{m.strips} * kStripOuts, kStripOuts, [&](int64_t begin, int64_t end) {
    for (int64_t out = begin; out < end; ++out) {
      for (int64_t in = 0; in < inputs; in += kLaneInputs) pack_eight(m, values, out, in, to);
      pack_groups(m, groups, out, to);
    }
  });
}

void decode_matrix(const IntegerMatrix& m, float* w, const ParallelFor& parallel) {
  const auto size = static_cast<int64_t>(size_of(m.scales));
  parallel(0, m.n, kStripOuts, [&](int64_t begin, int64_t end) {
    for (int64_t out = begin; out < end; ++out)
      for (int64_t in = 0; in < m.k; ++in) {
        const int64_t at =
            (out / kStripOuts * m.groups + in / m.group) * kStripOuts + out % kStripOuts;
        const int value = integer_at(m, m.data + place_of(m, out, in), in);
        float least = 0;
        if (m.minimums) std::memcpy(&least, m.data + m.zeros_at + at * 4, sizeof least);
        const int zero = m.minimums ? 0
                         : m.zeros  ? std::to_integer<int>(m.data[m.zeros_at + at])
                                    : middle_of(m);
        w[out * m.k + in] = static_cast<float>(value - zero) *
                                read_scale(m.scales, m.data + m.scales_at + at * size) +
                            least;
      }
  });
}

}  // namespace valora::kernels::cuda
