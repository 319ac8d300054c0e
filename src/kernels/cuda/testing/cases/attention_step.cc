#include "kernels/cuda/testing/cases/attention_step.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cuda/testing/cases/kv_codes.h"
#include "kernels/cuda/testing/threads.h"
#include "kernels/testing/attended.h"

namespace valora::kernels::cuda {
namespace {

constexpr int kLayers = 2;

std::string describe(const StepSizes& sizes) {
  std::string text = std::string(name_of(sizes.dtype)) + " heads " + std::to_string(sizes.heads) +
                     "/" + std::to_string(sizes.kv_heads) + " dim " + std::to_string(sizes.dim) +
                     " spans";
  for (const auto& [context, queries] : sizes.lengths)
    text += " " + std::to_string(context) + "+" + std::to_string(queries);
  if (in_bytes(sizes.format)) text += sizes.format == KvFormat::kInt8 ? " int8" : " fp8";
  if (sizes.rule.window > 0) text += " window " + std::to_string(sizes.rule.window);
  if (sizes.rule.scale > 0) text += " scale " + std::to_string(sizes.rule.scale);
  for (const PositionRange& range : sizes.joint)
    text += " joint " + std::to_string(range.begin) + "-" + std::to_string(range.end);
  return sizes.shifted ? text + " shifted" : text;
}

// Gives every span blocks from a shuffled pool, in which some stay unused. → the number of blocks
// in the pool
int64_t make_tables(AttentionStep& step, Random& random) {
  int64_t used = 0;
  for (const auto& [context, queries] : step.sizes.lengths)
    used += (context + queries + kBlockTokens - 1) / kBlockTokens;
  std::vector<int32_t> blocks(used + 3);
  std::iota(blocks.begin(), blocks.end(), 0);
  random.shuffle(blocks);
  auto next = blocks.begin();
  for (const auto& [context, queries] : step.sizes.lengths) {
    const int64_t count = (context + queries + kBlockTokens - 1) / kBlockTokens;
    step.tables.emplace_back(next, next + count);
    next += count;
  }
  return used + 3;
}

// The first position in a block that any query of the span attends to.
int64_t first_read(const AttentionStep& step, const QuerySpan& span) {
  const PositionRange range = testing_support::attended(span.context, span.context + span.queries,
                                                        step.sizes.rule.window, span.joint);
  return range.begin / kBlockTokens * kBlockTokens;
}

// The joint ranges that a step which ends at `end` does not cut.
std::vector<PositionRange> joint_until(int64_t end, const std::vector<PositionRange>& joint) {
  std::vector<PositionRange> whole;
  for (const PositionRange& range : joint)
    if (range.end <= end || range.begin >= end) whole.push_back(range);
  return whole;
}

void fill_cache(AttentionStep& step, Random& random) {
  const auto& s = step.sizes;
  for (const QuerySpan& span : step.spans)
    for (int64_t position = first_read(step, span); position < span.context + span.queries;
         ++position)
      for (int side = 0; side < 2; ++side)
        for (int head = 0; head < s.kv_heads; ++head) {
          const int64_t to = step.cached(span, position, head, side);
          const int64_t token = span.begin + position - span.context;
          const auto& fresh = side == 0 ? step.k : step.v;
          for (int i = 0; i < s.dim; ++i) {
            if (position < span.context) {
              step.pool_before[to + i] = rounded(random.uniform(-2, 2), s.dtype);
              step.pool_after[to + i] = step.pool_before[to + i];
            } else {
              step.pool_after[to + i] = fresh[token * step.kv_stride + head * s.dim + i];
            }
          }
        }
}

void attend(const AttentionStep& step, const QuerySpan& span, int64_t query, int head,
            Expected* out) {
  const auto& s = step.sizes;
  const int64_t keys = span.context + span.queries;
  const auto attends = [&](int64_t key) {
    return testing_support::attends(span.context + query, key, s.rule.window, span.joint);
  };
  const int kv_head = head / (s.heads / s.kv_heads);
  const float* q = &step.q[(span.begin + query) * step.q_stride + int64_t{head} * s.dim];
  std::vector<double> weights(keys, -HUGE_VAL);
  double largest = -HUGE_VAL, total = 0;
  for (int64_t j = 0; j < keys; ++j) {
    if (!attends(j)) continue;
    const float* k = &step.pool_after[step.cached(span, j, kv_head, 0)];
    double score = 0;
    for (int i = 0; i < s.dim; ++i) score += static_cast<double>(q[i]) * k[i];
    weights[j] = score * s.rule.scale_of(s.dim);
    largest = std::max(largest, weights[j]);
  }
  for (double& w : weights) total += w = std::exp(w - largest);
  for (int64_t j = 0; j < keys; ++j) {
    if (!attends(j)) continue;
    const float* v = &step.pool_after[step.cached(span, j, kv_head, 1)];
    const double w = weights[j] / total;
    for (int i = 0; i < s.dim; ++i) {
      out[i].value += w * v[i];
      out[i].size += w * std::abs(v[i]);
    }
  }
}

// Rounds the pool to 8 bits, and keeps the numbers that the codes stand for.
void round_cache(AttentionStep& step, int64_t blocks) {
  const auto& s = step.sizes;
  const int64_t layer = kv_layer_elements(s.kv_heads, s.dim, s.format);
  const int64_t codes_bytes = 2 * kBlockTokens * s.kv_heads * s.dim;
  step.byte_offset = layer;
  step.byte_stride = kLayers * layer + s.unused;
  step.bytes_before.assign(blocks * step.byte_stride, std::byte{0xff});
  step.bytes_after = step.bytes_before;
  for (const QuerySpan& span : step.spans)
    for (int64_t position = first_read(step, span); position < span.context + span.queries;
         ++position)
      for (int side = 0; side < 2; ++side)
        for (int head = 0; head < s.kv_heads; ++head) {
          const int64_t from = step.cached(span, position, head, side);
          const KvCodes codes = codes_of(&step.pool_after[from], s.dim, s.format);
          const int64_t begin = span.blocks[position / kBlockTokens] * step.byte_stride + layer;
          const int64_t row = (side * kBlockTokens + position % kBlockTokens) * s.kv_heads + head;
          const auto put = [&](std::vector<std::byte>& bytes, std::vector<float>& numbers) {
            std::memcpy(&bytes[begin + row * s.dim], codes.codes.data(), s.dim);
            std::memcpy(&bytes[begin + codes_bytes + 2 * row], &codes.scale, 2);
            std::copy(codes.numbers.begin(), codes.numbers.end(), numbers.begin() + from);
          };
          put(step.bytes_after, step.pool_after);
          if (position < span.context) put(step.bytes_before, step.pool_before);
        }
}

}  // namespace

int64_t AttentionStep::cached(const QuerySpan& span, int64_t position, int kv_head,
                              int side) const {
  const int64_t block = span.blocks[position / kBlockTokens];
  const int64_t row = side * kBlockTokens + position % kBlockTokens;
  return block * block_stride + layer_offset + (row * sizes.kv_heads + kv_head) * sizes.dim;
}

AttentionStep make_step(const StepSizes& sizes) {
  AttentionStep step;
  step.sizes = sizes;
  step.name = describe(sizes);
  Random random(sizes.heads * 1000003 + sizes.dim * 101 + sizes.lengths.size());
  const int64_t blocks = make_tables(step, random);
  const int64_t row = int64_t{sizes.kv_heads} * sizes.dim;
  step.layer_offset = 2 * kBlockTokens * row;
  step.block_stride = kLayers * 2 * kBlockTokens * row + sizes.unused;
  for (const auto& [context, queries] : sizes.lengths)
    step.joint.push_back(joint_until(context + queries, sizes.joint));
  step.tokens = 1;
  for (size_t i = 0; i < sizes.lengths.size(); ++i) {
    if (i == 2) ++step.tokens;
    const auto [context, queries] = sizes.lengths[i];
    step.spans.push_back({step.tokens, queries, context, step.tables[i].data(), step.joint[i]});
    step.tokens += queries;
  }
  step.q_stride = int64_t{sizes.heads} * sizes.dim + sizes.unused;
  step.kv_stride = row + sizes.unused;
  step.q = random.values(step.tokens * step.q_stride, sizes.dtype, 3);
  step.k = random.values(step.tokens * step.kv_stride, sizes.dtype, 2);
  step.v = random.values(step.tokens * step.kv_stride, sizes.dtype, 2);
  step.pool_before.assign(blocks * step.block_stride, NAN);
  step.pool_after = step.pool_before;
  fill_cache(step, random);
  if (in_bytes(sizes.format)) round_cache(step, blocks);
  return step;
}

std::vector<Expected> expected_attention(const AttentionStep& step) {
  const int heads = step.sizes.heads, dim = step.sizes.dim;
  std::vector<Expected> expected(step.tokens * heads * dim, Expected{NAN, 0});
  struct Row {
    const QuerySpan* span;
    int64_t query;
  };
  std::vector<Row> rows;
  for (const QuerySpan& span : step.spans)
    for (int64_t i = 0; i < span.queries; ++i) rows.push_back({&span, i});
  for_each_index(static_cast<int64_t>(rows.size()) * heads, [&](int64_t i) {
    const auto [span, query] = rows[i / heads];
    const auto head = static_cast<int>(i % heads);
    Expected* out = &expected[((span->begin + query) * heads + head) * dim];
    for (int j = 0; j < dim; ++j) out[j] = {};
    attend(step, *span, query, head, out);
  });
  return expected;
}

}  // namespace valora::kernels::cuda
