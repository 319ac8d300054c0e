// A random step over a paged cache, and its attention computed in double.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/testing/report.h"

namespace valora::kernels::cuda {

struct StepSizes {
  Dtype dtype = Dtype::kFloat;
  int heads = 1, kv_heads = 1, dim = 8;
  std::vector<std::pair<int, int>> lengths;  // (context, queries) of each span
  bool shifted = false;                      // nothing is 16-byte aligned
  int unused = 24;  // elements between blocks, and between tokens of q, k and v
  KvFormat format = KvFormat::kPlain;
  AttentionRule rule = {};
  std::vector<PositionRange> joint = {};  // of every span; those that a step cuts are left out
};

// The cache has 2 layers, of which the second is used, in blocks in random order with unused space
// between them. Everything unused is NaN, and so are blocks that are
// before the windows of all queries; in 8 bits, all bits of codes and scales are ones. A token
// before the first span, and one between the second and the third, belong to no span.
struct AttentionStep {
  StepSizes sizes;
  std::string name;
  int64_t tokens = 0, block_stride = 0, layer_offset = 0, q_stride = 0, kv_stride = 0;
  std::vector<QuerySpan> spans;
  std::vector<std::vector<int32_t>> tables;       // one per span
  std::vector<std::vector<PositionRange>> joint;  // one per span
  std::vector<float> q, k, v, pool_before, pool_after;
  // For a cache in 8 bits: the same pool, with strides in bytes. pool_before and pool_after hold
  // the numbers that its codes stand for.
  std::vector<std::byte> bytes_before, bytes_after;
  int64_t byte_stride = 0, byte_offset = 0;

  AttentionShape shape() const {
    return {sizes.heads,    sizes.kv_heads,    sizes.dim,     sizes.dtype,
            !sizes.shifted, multiprocessors(), shared_bytes()};
  }
  size_t shift() const { return sizes.shifted ? size_of(sizes.dtype) : 0; }
  // The index of the first of a head's dim values. side 0: K, 1: V.
  int64_t cached(const QuerySpan& span, int64_t position, int kv_head, int side) const;
};

AttentionStep make_step(const StepSizes& sizes);
// [tokens, heads * dim]; NaN for tokens outside all spans.
std::vector<Expected> expected_attention(const AttentionStep& step);

}  // namespace valora::kernels::cuda
