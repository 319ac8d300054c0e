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
#include "kernels/cpu/isa/to_integer.h"
#include "kernels/cpu/product/magnitude.h"
#include "kernels/cpu/product/product.h"
#include "kernels/tiles/choose.h"

namespace valora::kernels {
namespace {

constexpr int64_t kRegisterRowsOfBytes = 16;                // most rows decoded in registers
constexpr int64_t kRegisterKeys = 256, kDecodedKeys = 128;  // per chunk of the online softmax
static_assert(kRegisterKeys <= kMostIntegerKeys);
static_assert(kAheadBlocks * kPanelOutputs >= kRegisterKeys);
constexpr float kMostInt16 = 32767, kMostByte = 127;
// For smaller maxima, limit / maximum may overflow.
constexpr float kLeastLargest = kMostInt16 * std::numeric_limits<float>::min();

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

VALORA_CLONES void to_int16(const float* x, int64_t n, float inverse, int16_t* y) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<int16_t>(static_cast<int32_t>((x[i] * inverse + kToInteger) - kToInteger));
}

// Rounds x such that x ≈ y · result and |y| <= limit. The result is NaN if x contains a NaN or
// infinity.
float round_row(const float* x, int64_t n, float limit, int16_t* y) {
  const auto most = std::bit_cast<float>(largest_bits(x, n));
  if (most >= kLeastLargest && most <= std::numeric_limits<float>::max()) {
    to_int16(x, n, limit / most, y);
    return most / limit;
  }
  std::fill_n(y, n, int16_t{0});
  return most < kLeastLargest ? 0 : std::numeric_limits<float>::quiet_NaN();
}

// The largest integer magnitude for q such that an int32 can sum its products with 8-bit keys.
float most_of_queries(int64_t inputs) {
  const double most = 2147483647.0 / (kMostByte * static_cast<double>(inputs));
  return std::min(kMostInt16, static_cast<float>(std::floor(most)));
}

void widen(const float* x, int64_t n, float* y) { std::copy_n(x, n, y); }
void widen(const bf16* x, int64_t n, float* y) { widen_bf16(x, n, y); }
void narrow(const float* x, int64_t n, float* y) { std::copy_n(x, n, y); }
void narrow(const float* x, int64_t n, bf16* y) { to_bf16(x, n, y); }

void decode(const ByteFormatKernels& kernels, const uint8_t* bytes, int64_t pairs, float* panels) {
  kernels.decode_floats(bytes, pairs, panels);
}
void decode(const ByteFormatKernels& kernels, const uint8_t* bytes, int64_t pairs, bf16* panels) {
  kernels.decode_bf16(bytes, pairs, panels);
}

// Scratch memory of one thread.
template <typename T>
struct ByteWorkspace {
  std::vector<float> scores, weights, queries, query_scales, weight_scales, key_scales,
      value_scales, inverse_scales;
  std::vector<int16_t> integer_queries, integer_weights;
  std::vector<T> plain_queries, plain_weights, panels;
  std::vector<const T*> keys, values;

  static ByteWorkspace& get() {
    thread_local ByteWorkspace memory;
    return memory;
  }
};

template <typename V>
void reserve(std::vector<V>& memory, int64_t size) {
  if (std::ssize(memory) < size) memory.resize(static_cast<size_t>(size));
}

template <typename T>
class ByteTile {
 public:
  ByteTile(const QueryTile<T>& tile, const ByteBlocks& blocks, const PartialAttention& partial)
      : tile_(tile),
        blocks_(blocks),
        partial_(partial),
        kernels_(byte_attention(blocks.format)),
        rows_(tile.rows()),
        form_{tile.dim},
        in_registers_(rows_ <= kRegisterRowsOfBytes),
        integers_(in_registers_ && sizeof(T) == 2 && kernels_.integer_scores),
        chunk_(in_registers_ ? kRegisterKeys : kDecodedKeys) {
    reserve(memory_.scores, rows_ * chunk_);
    reserve(memory_.weights, rows_ * chunk_);
    reserve(memory_.weight_scales, rows_);
    reserve(memory_.value_scales, chunk_);
    reserve(memory_.inverse_scales, chunk_);
    reserve(memory_.key_scales, chunk_);
    std::fill_n(partial.sums, rows_ * tile.width(), 0.f);
    std::fill_n(partial.row_max, rows_, -std::numeric_limits<float>::infinity());
    std::fill_n(partial.row_sum, rows_, 0.f);
    in_registers_ ? prepare_queries() : copy_queries();
  }

  void run() {
    for (int64_t first = tile_.key_begin; first < tile_.key_end; first += chunk_) {
      first_ = first;
      keys_ = std::min(chunk_, tile_.key_end - first);
      block_ = (first - tile_.key_begin) / kPanelOutputs;
      width_ = panels_of(keys_) * kPanelOutputs;
      read_scales(form_.value_scales_at(), memory_.value_scales.data());
      if (!in_registers_)
        invert(memory_.value_scales.data(), width_, memory_.inverse_scales.data());
      in_registers_ ? score_in_registers() : score_decoded();
      for (int64_t row = 0; row < rows_; ++row) update_row(row);
      in_registers_ ? add_in_registers() : add_decoded();
    }
  }

 private:
  const uint8_t* head(int64_t block) const { return blocks_.heads[block_ + block]; }
  int64_t inputs() const { return 2 * form_.key_pairs(); }
  ByteRun byte_run() const {
    const uint8_t* const* heads = blocks_.heads.data() + block_;
    return {heads, panels_of(keys_), heads + panels_of(keys_), form_};
  }

  // Converts the rows of q to fp32, padded to whole pairs.
  void prepare_queries() {
    const int64_t dim = tile_.dim, ld = inputs();
    memory_.queries.assign(static_cast<size_t>(rows_ * ld), 0.f);
    memory_.query_scales.assign(static_cast<size_t>(rows_), 1.f);
    for (int64_t row = 0; row < rows_; ++row)
      widen(tile_.q + row / tile_.group * tile_.ldq + row % tile_.group * dim, dim,
            &memory_.queries[row * ld]);
    memory_.weight_scales.assign(static_cast<size_t>(rows_), 1.f);
    if (!integers_) return;
    reserve(memory_.integer_queries, rows_ * ld);
    reserve(memory_.integer_weights, rows_ * chunk_);
    for (int64_t row = 0; row < rows_; ++row)
      memory_.query_scales[row] = round_row(&memory_.queries[row * ld], ld, most_of_queries(ld),
                                            &memory_.integer_queries[row * ld]);
  }

  void copy_queries() {
    const int64_t all = tile_.group * tile_.dim;
    reserve(memory_.plain_queries, rows_ * tile_.dim);
    reserve(memory_.plain_weights, rows_ * chunk_);
    for (int64_t t = 0; t < tile_.tokens; ++t)
      std::copy_n(tile_.q + t * tile_.ldq, all, &memory_.plain_queries[t * all]);
    const int64_t per_block = (form_.key_pairs() + form_.value_pairs()) * kPairBytes;
    reserve(memory_.panels, per_block * panels_of(chunk_));
    memory_.keys.clear();
    memory_.values.clear();
    for (int64_t b = 0; b < panels_of(chunk_); ++b) {
      memory_.keys.push_back(memory_.panels.data() + b * per_block);
      memory_.values.push_back(memory_.keys.back() + form_.key_pairs() * kPairBytes);
    }
  }

  void read_scales(int64_t at, float* scales) const {
    for (int64_t b = 0; b < panels_of(keys_); ++b)
      widen_bf16(reinterpret_cast<const bf16*>(head(b) + at), kPanelOutputs,
                 scales + b * kPanelOutputs);
  }

  void score_in_registers() {
    ByteScores scores{
        memory_.queries.data(), rows_, inputs(), memory_.query_scales.data(), byte_run(),
        memory_.scores.data(),  chunk_};
    if (!integers_) return kernels_.scores(scores);
    scores.q = memory_.integer_queries.data();
    kernels_.integer_scores(scores);
  }

  void score_decoded() {
    for (int64_t b = 0; b < panels_of(keys_); ++b) {
      T* const panels = memory_.panels.data() + (memory_.keys[b] - memory_.panels.data());
      decode(kernels_, head(b), form_.key_pairs(), panels);
      decode(kernels_, head(b) + form_.values_at(), form_.value_pairs(),
             panels + form_.key_pairs() * kPairBytes);
    }
    Product<T> score;
    score.x = memory_.plain_queries.data();
    score.m = rows_;
    score.ldx = tile_.dim;
    score.w = {nullptr, keys_, tile_.dim, memory_.keys.data(), 1};
    score.panel_end = panels_of(keys_);
    score.epilogue = Epilogue::kStoreFloat;
    score.y = memory_.scores.data();
    score.ldy = chunk_;
    score.fetch = memory_.values.data();
    score.tile =
        choose_cpu_tile({ProductKind::kExpand, sizeof(T) == 4, isa(), rows_, keys_, tile_.dim});
    kernel_set<T>().multiply(score);
    read_scales(form_.key_scales_at(), memory_.key_scales.data());
    for (int64_t row = 0; row < rows_; ++row)
      multiply_by(&memory_.scores[row * chunk_], memory_.key_scales.data(), keys_);
  }

  // Turns a row's scores into weights that include the value scales.
  void update_row(int64_t row) {
    float* const scores = &memory_.scores[row * chunk_];
    float* const weights = &memory_.weights[row * chunk_];
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
    float* const weights = &memory_.weights[row * chunk_];
    const float* const scales = memory_.value_scales.data() + hidden;
    if (in_registers_ || sizeof(T) == sizeof(float)) {
      multiply_by(weights + hidden, scales, seen - hidden);
      if (integers_)
        memory_.weight_scales[row] =
            round_row(weights, width_, kMostInt16, &memory_.integer_weights[row * chunk_]);
      else if (!in_registers_)
        narrow(weights, width_, &memory_.plain_weights[row * chunk_]);
      return;
    }
    if constexpr (sizeof(T) < sizeof(float)) add_rounded(row, hidden, seen, state);
  }

  // bf16: row_sum adds up the rounded weights, so that the normalised weights add up to one.
  void add_rounded(int64_t row, int64_t hidden, int64_t seen, const SoftmaxState<float>& state)
    requires(sizeof(T) < sizeof(float))
  {
    const float* const weights = &memory_.weights[row * chunk_];
    const float* const scales = memory_.value_scales.data();
    float* const scaled = memory_.scores.data() + row * chunk_;  // reuses the scores' memory
    std::copy_n(weights, width_, scaled);
    multiply_by(scaled + hidden, scales + hidden, seen - hidden);
    T* const rounded = &memory_.plain_weights[row * chunk_];
    narrow(scaled, width_, rounded);
    partial_.row_sum[row] =
        before_ * state.rescale + sum_without_scales(rounded + hidden, weights + hidden,
                                                     memory_.inverse_scales.data() + hidden,
                                                     seen - hidden);
  }

  void add_in_registers() {
    ByteValueSum sum{memory_.weights.data(),       rows_,      chunk_,
                     memory_.weight_scales.data(), byte_run(), partial_.sums};
    if (!integers_) return kernels_.add_values(sum);
    sum.weights = memory_.integer_weights.data();
    kernels_.add_integer_values(sum);
  }

  void add_decoded() {
    kernel_set<T>().add_values({memory_.plain_weights.data(), rows_, chunk_, keys_,
                                memory_.values.data(), nullptr, tile_.dim, partial_.sums});
  }

  const QueryTile<T>& tile_;
  const ByteBlocks& blocks_;
  const PartialAttention& partial_;
  const ByteFormatKernels& kernels_;
  const int64_t rows_;
  const ByteHead form_;
  const bool in_registers_, integers_;
  const int64_t chunk_;
  ByteWorkspace<T>& memory_ = ByteWorkspace<T>::get();
  int64_t first_ = 0, keys_ = 0, block_ = 0, width_ = 0;  // of the chunk
  float before_ = 0;                                      // row_sum of earlier chunks
};

}  // namespace

template <typename T>
void attend(const QueryTile<T>& tile, const ByteBlocks& blocks, const PartialAttention& partial) {
  ByteTile<T>(tile, blocks, partial).run();
}

template void attend(const QueryTile<float>&, const ByteBlocks&, const PartialAttention&);
template void attend(const QueryTile<bf16>&, const ByteBlocks&, const PartialAttention&);

}  // namespace valora::kernels
