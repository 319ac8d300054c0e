// Few rows over 8-bit keys and values, which are decoded in registers (byte_tile.h).
#include "kernels/cpu/attention/byte_tile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/cpu/isa/clones.h"

namespace valora::kernels {
namespace {

constexpr int64_t kRegisterKeys = 256;  // per chunk of the online softmax
static_assert(kRegisterKeys <= kMostIntegerKeys);
static_assert(kAheadBlocks * kPanelOutputs >= kRegisterKeys);
constexpr float kMostWord = 32767, kMostByte = 127;

VALORA_CLONES void scale_row_sums(float* x, int64_t n, float by) {
  for (int64_t i = 0; i < n; ++i) x[i] *= by;
}

VALORA_CLONES void widen_floats(const bf16* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::bit_cast<float>(uint32_t{x[i].bits} << 16);
}
void widen_floats(const float* x, int64_t n, float* y) { std::copy_n(x, n, y); }

// The 16 scales at byte `at` of each head.
VALORA_CLONES void widen_scales(const uint8_t* const* heads, int64_t blocks, int64_t at, float* y) {
  for (int64_t b = 0; b < blocks; ++b) {
    const auto* const scales = reinterpret_cast<const bf16*>(heads[b] + at);
    for (int64_t i = 0; i < kPanelOutputs; ++i)
      y[b * kPanelOutputs + i] = std::bit_cast<float>(uint32_t{scales[i].bits} << 16);
  }
}

// The largest int16 magnitude for q such that an int32 can sum its products with 8-bit keys.
float most_word_of(int64_t dim) {
  const double most = 2147483647.0 / (kMostByte * static_cast<double>(dim));
  return std::min(kMostWord, static_cast<float>(std::floor(most)));
}

const ByteArithmetic& arithmetic_of(const ByteFormatKernels& kernels, const float*) {
  return kernels.of_float;
}
const ByteArithmetic& arithmetic_of(const ByteFormatKernels& kernels, const bf16*) {
  return kernels.of_bf16;
}

// Scratch memory of one thread.
struct RegisterWorkspace {
  std::vector<float> scores, queries, query_scales, weight_scales, value_scales;
  std::vector<int32_t> starts;
  std::vector<uint8_t> coded_queries, weights;

  static RegisterWorkspace& of(int64_t rows, int64_t width, RowCode code) {
    thread_local RegisterWorkspace memory;
    reserve(memory.scores, rows * kRegisterKeys);
    reserve(memory.queries, rows * width);
    reserve(memory.query_scales, rows);
    reserve(memory.weight_scales, rows);
    reserve(memory.value_scales, kRegisterKeys);
    reserve(memory.starts, rows);
    reserve(memory.coded_queries, rows * width / kQuad * query_quad_bytes(code));
    reserve(memory.weights, rows * kRegisterKeys / kQuad * weight_quad_bytes(code));
    return memory;
  }
};

template <typename T>
class RegisterTile {
 public:
  RegisterTile(const QueryTile<T>& tile, const ByteBlocks& blocks, const PartialAttention& partial)
      : tile_(tile),
        blocks_(blocks),
        partial_(partial),
        kernels_(arithmetic_of(byte_attention(blocks.format), tile.q)),
        rows_(tile.rows()),
        form_{tile.dim},
        ldq_(tile.width() / kQuad * query_quad_bytes(kernels_.code)),
        ldw_(kRegisterKeys / kQuad * weight_quad_bytes(kernels_.code)),
        memory_(RegisterWorkspace::of(rows_, tile.width(), kernels_.code)) {
    std::fill_n(partial.sums, rows_ * tile.width(), 0.f);
    std::fill_n(partial.row_max, rows_, -std::numeric_limits<float>::infinity());
    std::fill_n(partial.row_sum, rows_, 0.f);
    code_queries();
  }

  void run() {
    for (int64_t first = tile_.key_begin; first < tile_.key_end; first += kRegisterKeys) {
      const int64_t keys = std::min(kRegisterKeys, tile_.key_end - first);
      const uint8_t* const* heads =
          blocks_.heads.data() + (first - tile_.key_begin) / kPanelOutputs;
      const ByteRun run{heads, panels_of(keys), heads + panels_of(keys), form_};
      kernels_.scores({memory_.coded_queries.data(), rows_, ldq_, memory_.query_scales.data(),
                       memory_.starts.data(), run, memory_.scores.data(), kRegisterKeys});
      widen_scales(heads, run.blocks, form_.value_scales_at(), memory_.value_scales.data());
      weigh(first, keys);
      kernels_.add_values(
          {memory_.weights.data(), rows_, ldw_, memory_.weight_scales.data(), run, partial_.sums});
    }
  }

 private:
  void code_queries() {
    const int64_t width = tile_.width();
    ByteQuery queries[kMostRegisterRows];
    for (int64_t row = 0; row < rows_; ++row) {
      float* const x = &memory_.queries[row * width];
      widen_floats(tile_.q + row / tile_.group * tile_.ldq + row % tile_.group * tile_.dim,
                   tile_.dim, x);
      std::fill(x + tile_.dim, x + width, 0.f);
      queries[row] = {x, width, most_word_of(tile_.dim), &memory_.coded_queries[row * ldq_]};
    }
    kernels_.code_queries(queries, rows_);
    for (int64_t row = 0; row < rows_; ++row) {
      memory_.query_scales[row] = queries[row].scale;
      memory_.starts[row] = queries[row].start;
    }
  }

  // As in query_tile.cc: a row attends to keys [hidden, seen) of the chunk that begins at `first`.
  void weigh(int64_t first, int64_t keys) {
    ByteSoftmax rows[kMostRegisterRows];
    for (int64_t row = 0; row < rows_; ++row) {
      const PositionRange visible = tile_.visible_to(row);
      ByteSoftmax& softmax = rows[row];
      softmax.scores = &memory_.scores[row * kRegisterKeys];
      softmax.seen = std::clamp<int64_t>(visible.end - first, 0, keys);
      softmax.hidden = std::clamp<int64_t>(visible.begin - first, 0, softmax.seen);
      softmax.width = panels_of(keys) * kPanelOutputs;
      softmax.value_scales = memory_.value_scales.data();
      softmax.scale = tile_.scale;
      softmax.row_max = partial_.row_max[row];
      softmax.row_sum = partial_.row_sum[row];
      softmax.weights = &memory_.weights[row * ldw_];
    }
    kernels_.weigh(rows, rows_);
    for (int64_t row = 0; row < rows_; ++row) {
      partial_.row_max[row] = rows[row].row_max;
      partial_.row_sum[row] = rows[row].row_sum;
      memory_.weight_scales[row] = rows[row].weight_scale;
      if (rows[row].rescale != 1 && first > tile_.key_begin)
        scale_row_sums(partial_.sums + row * tile_.width(), tile_.width(), rows[row].rescale);
    }
  }

  const QueryTile<T>& tile_;
  const ByteBlocks& blocks_;
  const PartialAttention& partial_;
  const ByteArithmetic& kernels_;
  const int64_t rows_;
  const ByteHead form_;
  const int64_t ldq_, ldw_;  // bytes per row of coded queries and weights
  RegisterWorkspace& memory_;
};

}  // namespace

template <typename T>
void attend_in_registers(const QueryTile<T>& tile, const ByteBlocks& blocks,
                         const PartialAttention& partial) {
  RegisterTile<T>(tile, blocks, partial).run();
}

template void attend_in_registers(const QueryTile<float>&, const ByteBlocks&,
                                  const PartialAttention&);
template void attend_in_registers(const QueryTile<bf16>&, const ByteBlocks&,
                                  const PartialAttention&);

}  // namespace valora::kernels
