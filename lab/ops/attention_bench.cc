#include "lab/ops/attention_bench.h"

#include <fmt/format.h>

#include <optional>

#include "lab/ops/cycle.h"
#include "lab/ops/paged_sequences.h"
#include "lab/ops/random_tensors.h"
#include "ops/attention/run_attention.h"

namespace valora::bench {
namespace {

constexpr double kAttentionTolerance = 0.02;
constexpr double kKeyBytes = 2;  // bytes per bf16

double bytes_of_cache(const AttentionShape& s) {
  return 2 * kKeyBytes * static_cast<double>(s.batch * s.keys() * s.kv_heads * s.dim);
}

Work work_of(const AttentionShape& s, bool cold) {
  const double pairs = static_cast<double>(s.queries) *
                       (static_cast<double>(s.context) + (static_cast<double>(s.queries) + 1) / 2);
  return {cold ? bytes_of_cache(s) : 0, 4 * pairs * static_cast<double>(s.batch * s.heads * s.dim)};
}

std::vector<int64_t> counting(int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

// ATen gets contiguous keys and values. During decode, the query heads of a KV head are passed as
// its queries, so that ATen does not copy keys.
Measurement measure_decode(Bench& bench, const AttentionShape& s) {
  const int64_t layers = cold_copies(static_cast<int64_t>(bytes_of_cache(s)));
  const PagedSequences sequences(s, layers);
  Cycle<int64_t> layer(counting(layers));
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (int64_t i = 0; i < layers; ++i)
    copies.emplace_back(sequences.keys().clone(), sequences.values().clone());
  Cycle<std::pair<at::Tensor, at::Tensor>> contiguous(std::move(copies));
  const at::Tensor q = sequences.queries().view({s.batch, s.kv_heads, s.heads / s.kv_heads, s.dim});
  const auto aten = [&] {
    const auto& [k, v] = contiguous.next();
    return at::scaled_dot_product_attention(q, k, v).view({s.batch, s.heads * s.dim});
  };
  return compete(bench, work_of(s, true),
                 {pure(kOurs, [&] { return sequences.attend(layer.next()); }), pure("aten", aten)},
                 kAttentionTolerance);
}

// Compares the 8-bit cache with the bf16 one; the limit is the time to read int8 and its scales.
Measurement measure_formats(Bench& bench, const AttentionShape& s) {
  const auto bytes = static_cast<double>(
      (s.keys() + ops::KvArena::kBlockTokens - 1) / ops::KvArena::kBlockTokens * s.batch *
      ops::KvArena::block_bytes({1, s.kv_heads, s.dim, at::kBFloat16, ops::KvFormat::kInt8},
                                at::kCPU));
  const int64_t layers = cold_copies(static_cast<int64_t>(bytes));
  const PagedSequences int8(s, layers, ops::KvFormat::kInt8), fp8(s, layers, ops::KvFormat::kFp8),
      bf16(s, layers);
  Cycle<int64_t> layer(counting(layers));
  const auto attends = [&](const PagedSequences& sequences) {
    return [&] { return sequences.attend(layer.next()); };
  };
  return compete(
      bench, {bytes, work_of(s, true).operations},
      {pure(kOurs, attends(int8)), pure("fp8", attends(fp8)), pure("bf16", attends(bf16))},
      kAttentionTolerance);
}

// ATen gets contiguous keys and values per query head.
Measurement measure_prefill(Bench& bench, const AttentionShape& s) {
  const PagedSequences sequences(s, 1);
  const at::Tensor q =
      sequences.queries().view({s.batch, s.queries, s.heads, s.dim}).transpose(1, 2).contiguous();
  const at::Tensor k = sequences.keys().repeat_interleave(s.heads / s.kv_heads, 1),
                   v = sequences.values().repeat_interleave(s.heads / s.kv_heads, 1);
  std::optional<at::Tensor> mask;
  if (s.context > 0) mask = at::ones({s.queries, s.keys()}, at::kBool).tril(s.context);
  const auto aten = [&] {
    return at::scaled_dot_product_attention(q, k, v, mask, 0.0, s.context == 0)
        .transpose(1, 2)
        .reshape({s.batch * s.queries, s.heads * s.dim});
  };
  return compete(bench, work_of(s, false),
                 {pure(kOurs, [&] { return sequences.attend(0); }), pure("aten", aten)},
                 kAttentionTolerance);
}

struct BlockShape {
  int64_t blocks, length, heads, dim;
};

Measurement measure_blocks(Bench& bench, const BlockShape& s) {
  const int64_t tokens = s.blocks * s.length;
  at::Tensor rows[3], blocks[3];
  for (int i = 0; i < 3; ++i) {
    rows[i] = normal_tensor({tokens, s.heads, s.dim}, at::kBFloat16, 1, 11 + i);
    blocks[i] = rows[i].view({s.blocks, s.length, s.heads, s.dim}).transpose(1, 2).contiguous();
  }
  std::vector<int64_t> ends;
  for (int64_t i = 1; i <= s.blocks; ++i) ends.push_back(i * s.length);
  const auto aten = [&] {
    return at::scaled_dot_product_attention(blocks[0], blocks[1], blocks[2])
        .transpose(1, 2)
        .reshape({tokens, s.heads * s.dim});
  };
  const auto ours = [&] {
    ops::RunAttention attention(ends, s.heads, s.dim, at::kBFloat16, at::kCPU);
    attention.store(rows[1], rows[2]);
    return attention.attend(0, rows[0]);
  };
  return compete(bench, {0, 4.0 * static_cast<double>(tokens * s.length * s.heads * s.dim)},
                 {pure(kOurs, ours), pure("aten", aten)}, kAttentionTolerance);
}

// `tokens`: query tokens of the step. `extent`: their description in the name.
Shape paged_shape(const char* operation, const AttentionShape& s, int64_t tokens,
                  const std::string& extent,
                  std::function<std::optional<Measurement>(Bench&)> measure) {
  return {
      operation,
      fmt::format("heads {}/{}x{} {} context {}", s.heads, s.kv_heads, s.dim, extent, s.context),
      {{"heads", s.heads},
       {"kv_heads", s.kv_heads},
       {"dim", s.dim},
       {"batch", s.batch},
       {"context", s.context},
       {"tokens", tokens}},
      std::move(measure)};
}

Shape decode_shape(const AttentionShape& s) {
  return paged_shape("decode_attention", s, s.batch, fmt::format("batch {}", s.batch),
                     [s](Bench& bench) { return measure_decode(bench, s); });
}

// Decodes and chunks over an int8 cache.
Shape format_shape(const AttentionShape& s) {
  return paged_shape("kv_int8_attention", s, s.batch * s.queries,
                     fmt::format("batch {} chunk {}", s.batch, s.queries),
                     [s](Bench& bench) { return measure_formats(bench, s); });
}

Shape prefill_shape(const AttentionShape& s) {
  return paged_shape("prefill_attention", s, s.queries, fmt::format("chunk {}", s.queries),
                     [s](Bench& bench) { return measure_prefill(bench, s); });
}

Shape block_shape(const BlockShape& s) {
  return {"block_attention",
          fmt::format("heads {}x{} {} of {} tokens", s.heads, s.dim, s.blocks, s.length),
          {{"heads", s.heads},
           {"dim", s.dim},
           {"blocks", s.blocks},
           {"length", s.length},
           {"tokens", s.blocks * s.length}},
          [s](Bench& bench) { return measure_blocks(bench, s); }};
}

}  // namespace

std::vector<Shape> attention_shapes(bool quick) {
  struct Heads {
    int64_t heads, kv_heads, dim;
  };
  const std::vector<Heads> models{{14, 2, 64}, {28, 4, 128}};
  std::vector<Shape> shapes;
  for (const Heads& h : models) {
    for (const int64_t batch : {1, 8})
      for (const int64_t context :
           quick ? std::vector<int64_t>{2048} : std::vector<int64_t>{128, 512, 2048, 8192})
        shapes.push_back(decode_shape({batch, context - 1, 1, h.heads, h.kv_heads, h.dim}));
    for (const int64_t chunk :
         quick ? std::vector<int64_t>{512} : std::vector<int64_t>{128, 512, 2048})
      for (const int64_t context : quick ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 2048})
        shapes.push_back(prefill_shape({1, context, chunk, h.heads, h.kv_heads, h.dim}));
  }
  for (const Heads& h : std::vector<Heads>{{14, 2, 64}, {28, 4, 128}, {9, 3, 64}}) {
    shapes.push_back(format_shape({1, 8191, 1, h.heads, h.kv_heads, h.dim}));
    if (quick) break;
    shapes.push_back(format_shape({8, 8191, 1, h.heads, h.kv_heads, h.dim}));
    shapes.push_back(format_shape({1, 2048, 512, h.heads, h.kv_heads, h.dim}));
  }
  shapes.push_back(block_shape({4, 256, 16, 80}));
  if (quick) return shapes;
  shapes.push_back(block_shape({1, 1024, 16, 80}));
  shapes.push_back(block_shape({1, 4096, 16, 80}));
  shapes.push_back(block_shape({64, 64, 16, 80}));
  return shapes;
}

}  // namespace valora::bench
