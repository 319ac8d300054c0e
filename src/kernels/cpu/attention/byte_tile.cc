#include "kernels/cpu/attention/byte_tile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/cpu/attention/softmax_state.h"
#include "kernels/cpu/isa/clones.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/product/product.h"
#include "kernels/tiles/choose.h"

namespace valora::kernels {
namespace {

constexpr int64_t kRegisterRowsOfBytes = 16;  // most rows decoded in registers
constexpr int64_t kDecodedKeys = 128;         // per chunk of the online softmax

VALORA_CLONES void scale_sums(float* x, int64_t n, float by) {
  for (int64_t i = 0; i < n; ++i) x[i] *= by;
}

VALORA_CLONES void multiply_by(float* x, const float* by, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] *= by[i];
}

VALORA_CLONES void widen_bf16(const bf16* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::bit_cast<float>(uint32_t{x[i].bits} << 16);
}

VALORA_CLONES void to_bf16(const float* x, int64_t n, bf16* y) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t u = std::bit_cast<uint32_t>(x[i]);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    y[i].bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
}

VALORA_CLONES void invert(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 1 / x[i];
}

// Σ weights · inverse scales: the sum of the rounded weights with the value scales divided out.
// unscaled: the weights before scaling and rounding, used where the scale has no finite inverse.
VALORA_CLONES float sum_without_scales(const bf16* weights, const float* unscaled,
                                       const float* inverses, int64_t n) {
  constexpr int kLanes = 16;
  float partial[kLanes] = {};
  const auto term = [&](int64_t i) {
    const float weight = std::bit_cast<float>(uint32_t{weights[i].bits} << 16);
    return std::abs(inverses[i]) <= std::numeric_limits<float>::max() ? weight * inverses[i]
                                                                      : unscaled[i];
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) partial[l] += term(i + l);
  for (int l = 0; i < n; ++i, ++l) partial[l] += term(i);
  float sum = 0;
  for (const float part : partial) sum += part;
  return sum;
}

void decode(const ByteFormatKernels& kernels, const uint8_t* bytes, int64_t quads, float* panels) {
  kernels.decode_floats(bytes, quads, panels);
}
void decode(const ByteFormatKernels& kernels, const uint8_t* bytes, int64_t quads, bf16* panels) {
  kernels.decode_bf16(bytes, quads, panels);
}

// Scratch memory of one thread.
template <typename T>
struct ByteWorkspace {
  std::vector<float> scores, weights, key_scales, value_scales, inverse_scales;
  std::vector<T> plain_queries, plain_weights, panels;
  std::vector<const T*> keys, values;

  static ByteWorkspace& get() {
    thread_local ByteWorkspace memory;
    return memory;
  }
};

template <typename T>
class DecodedTile {
 public:
  DecodedTile(const QueryTile<T>& tile, const ByteBlocks& blocks, const PartialAttention& partial)
      : tile_(tile),
        blocks_(blocks),
        partial_(partial),
        kernels_(byte_attention(blocks.format)),
        rows_(tile.rows()),
        form_{tile.dim} {
    reserve(memory_.scores, rows_ * kDecodedKeys);
    reserve(memory_.weights, rows_ * kDecodedKeys);
    reserve(memory_.value_scales, kDecodedKeys);
    reserve(memory_.inverse_scales, kDecodedKeys);
    reserve(memory_.key_scales, kDecodedKeys);
    std::fill_n(partial.sums, rows_ * tile.width(), 0.f);
    std::fill_n(partial.row_max, rows_, -std::numeric_limits<float>::infinity());
    std::fill_n(partial.row_sum, rows_, 0.f);
    copy_queries();
    place_panels();
  }

  void run() {
    for (int64_t first = tile_.key_begin; first < tile_.key_end; first += kDecodedKeys) {
      first_ = first;
      keys_ = std::min(kDecodedKeys, tile_.key_end - first);
      block_ = (first - tile_.key_begin) / kPanelOutputs;
      width_ = panels_of(keys_) * kPanelOutputs;
      read_scales(form_.value_scales_at(), memory_.value_scales.data());
      invert(memory_.value_scales.data(), width_, memory_.inverse_scales.data());
      decode_panels();
      score();
      for (int64_t row = 0; row < rows_; ++row) update_row(row);
      kernel_set<T>().add_values({memory_.plain_weights.data(), rows_, kDecodedKeys, keys_,
                                  memory_.values.data(), nullptr, tile_.dim, partial_.sums});
    }
  }

 private:
  const uint8_t* head(int64_t block) const { return blocks_.heads[block_ + block]; }

  void copy_queries() {
    const int64_t all = tile_.group * tile_.dim;
    reserve(memory_.plain_queries, rows_ * tile_.dim);
    reserve(memory_.plain_weights, rows_ * kDecodedKeys);
    for (int64_t t = 0; t < tile_.tokens; ++t)
      std::copy_n(tile_.q + t * tile_.ldq, all, &memory_.plain_queries[t * all]);
  }

  // Places the decoded keys and values of each block of a chunk.
  void place_panels() {
    const int64_t per_block = (form_.key_quads() + form_.value_quads()) * kQuadBytes;
    reserve(memory_.panels, per_block * panels_of(kDecodedKeys));
    memory_.keys.clear();
    memory_.values.clear();
    for (int64_t b = 0; b < panels_of(kDecodedKeys); ++b) {
      memory_.keys.push_back(memory_.panels.data() + b * per_block);
      memory_.values.push_back(memory_.keys.back() + form_.values_at());
    }
  }

  void read_scales(int64_t at, float* scales) const {
    for (int64_t b = 0; b < panels_of(keys_); ++b)
      widen_bf16(reinterpret_cast<const bf16*>(head(b) + at), kPanelOutputs,
                 scales + b * kPanelOutputs);
  }

  void decode_panels() {
    for (int64_t b = 0; b < panels_of(keys_); ++b) {
      T* const panels = memory_.panels.data() + (memory_.keys[b] - memory_.panels.data());
      decode(kernels_, head(b), form_.key_quads(), panels);
      decode(kernels_, head(b) + form_.values_at(), form_.value_quads(),
             panels + form_.values_at());
    }
  }

  void score() {
    Product<T> score;
    score.x = memory_.plain_queries.data();
    score.m = rows_;
    score.ldx = tile_.dim;
    score.w = {nullptr, keys_, tile_.dim, memory_.keys.data(), 1};
    score.panel_end = panels_of(keys_);
    score.epilogue = Epilogue::kStoreFloat;
    score.y = memory_.scores.data();
    score.ldy = kDecodedKeys;
    score.fetch = memory_.values.data();
    score.tile =
        choose_cpu_tile({ProductKind::kExpand, sizeof(T) == 4, isa(), rows_, keys_, tile_.dim});
    kernel_set<T>().multiply(score);
    read_scales(form_.key_scales_at(), memory_.key_scales.data());
    for (int64_t row = 0; row < rows_; ++row)
      multiply_by(&memory_.scores[row * kDecodedKeys], memory_.key_scales.data(), keys_);
  }

  // Turns a row's scores into weights that include the value scales.
  void update_row(int64_t row) {
    float* const scores = &memory_.scores[row * kDecodedKeys];
    float* const weights = &memory_.weights[row * kDecodedKeys];
    // As in query_tile.cc: the row attends to keys [hidden, seen) of this chunk.
    const PositionRange visible = tile_.visible_to(row);
    const int64_t seen = std::clamp<int64_t>(visible.end - first_, 0, keys_),
                  hidden = std::clamp<int64_t>(visible.begin - first_, 0, seen),
                  skipped = hidden / kPanelOutputs * kPanelOutputs;
    std::fill(scores + skipped, scores + hidden, -std::numeric_limits<float>::infinity());
    SoftmaxState<float> state{scores + skipped,
                              hidden < seen ? seen - skipped : 0,
                              width_ - skipped,
                              tile_.scale,
                              partial_.row_max[row],
                              partial_.row_sum[row],
                              1,
                              weights + skipped};
    before_ = state.row_sum;
    kernel_set<float>().update_softmax(state);
    std::fill(weights, weights + hidden, 0.f);
    partial_.row_max[row] = state.row_max;
    partial_.row_sum[row] = state.row_sum;
    if (state.rescale != 1 && first_ > tile_.key_begin)
      scale_sums(partial_.sums + row * tile_.width(), tile_.width(), state.rescale);
    apply_value_scales(row, hidden, seen, state);
  }

  // Skips keys that the row does not attend to: their scales may be anything, even NaN.
  void apply_value_scales(int64_t row, int64_t hidden, int64_t seen,
                          const SoftmaxState<float>& state) {
    float* const weights = &memory_.weights[row * kDecodedKeys];
    const float* const scales = memory_.value_scales.data() + hidden;
    if constexpr (sizeof(T) == sizeof(float)) {
      multiply_by(weights + hidden, scales, seen - hidden);
      std::copy_n(weights, width_, &memory_.plain_weights[row * kDecodedKeys]);
    } else {
      add_rounded(row, hidden, seen, state);
    }
  }

  // bf16: row_sum adds up the rounded weights, so that the normalised weights add up to one.
  void add_rounded(int64_t row, int64_t hidden, int64_t seen, const SoftmaxState<float>& state)
    requires(sizeof(T) < sizeof(float))
  {
    const float* const weights = &memory_.weights[row * kDecodedKeys];
    const float* const scales = memory_.value_scales.data();
    float* const scaled = memory_.scores.data() + row * kDecodedKeys;  // reuses the scores' memory
    std::copy_n(weights, width_, scaled);
    multiply_by(scaled + hidden, scales + hidden, seen - hidden);
    T* const rounded = &memory_.plain_weights[row * kDecodedKeys];
    to_bf16(scaled, width_, rounded);
    partial_.row_sum[row] =
        before_ * state.rescale + sum_without_scales(rounded + hidden, weights + hidden,
                                                     memory_.inverse_scales.data() + hidden,
                                                     seen - hidden);
  }

  const QueryTile<T>& tile_;
  const ByteBlocks& blocks_;
  const PartialAttention& partial_;
  const ByteFormatKernels& kernels_;
  const int64_t rows_;
  const ByteHead form_;
  ByteWorkspace<T>& memory_ = ByteWorkspace<T>::get();
  int64_t first_ = 0, keys_ = 0, block_ = 0, width_ = 0;  // of the chunk
  float before_ = 0;                                      // row_sum of earlier chunks
};

}  // namespace

template <typename T>
void attend(const QueryTile<T>& tile, const ByteBlocks& blocks, const PartialAttention& partial) {
  if (tile.rows() <= kRegisterRowsOfBytes) return attend_in_registers(tile, blocks, partial);
  DecodedTile<T>(tile, blocks, partial).run();
}

template void attend(const QueryTile<float>&, const ByteBlocks&, const PartialAttention&);
template void attend(const QueryTile<bf16>&, const ByteBlocks&, const PartialAttention&);

}  // namespace valora::kernels
