// Differentiable attention for training: a batch of whole sequences, padded at their ends. The mask
// hides the padding from all real queries.
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ops/attention/attention_targets.h"

namespace valora::ops {
namespace {

// Up to this length, computing the full score matrix is faster than ATen's blockwise attention
// (forward plus backward).
constexpr int64_t kTableTokens = 512;

// Converts rows of the flat batch to [sequences, longest] and back.
class Padding {
 public:
  explicit Padding(std::span<const QuerySpan> spans) : count_(static_cast<int64_t>(spans.size())) {
    for (const QuerySpan& span : spans) longest_ = std::max<int64_t>(longest_, span.queries);
    even_ = std::ranges::all_of(spans, [&](const QuerySpan& s) { return s.queries == longest_; });
    if (even_) return;
    std::vector<int64_t> padded, flat;
    for (const QuerySpan& span : spans)
      for (int64_t i = 0; i < longest_; ++i) {
        if (i < span.queries) flat.push_back(static_cast<int64_t>(padded.size()));
        padded.push_back(span.begin + std::min<int64_t>(i, span.queries - 1));
      }
    padded_rows_ = at::tensor(padded);
    flat_rows_ = at::tensor(flat);
  }

  // x: [T, heads, dim] → [sequences, heads, longest, dim]
  at::Tensor pad(const at::Tensor& x) const {
    const at::Tensor rows = even_ ? x : x.index_select(0, padded_rows_.to(x.device()));
    return rows.reshape({count_, longest_, x.size(1), x.size(2)}).transpose(1, 2);
  }
  // → [T, heads * dim]
  at::Tensor unpad(const at::Tensor& x) const {
    const at::Tensor rows = x.transpose(1, 2).reshape({count_ * longest_, -1});
    return even_ ? rows : rows.index_select(0, flat_rows_.to(x.device()));
  }
  int64_t longest() const { return longest_; }

 private:
  int64_t count_, longest_ = 0;
  bool even_ = false;
  at::Tensor padded_rows_, flat_rows_;
};

// The positions that padded sequences attend to: bool [sequences, 1, tokens, tokens], or [tokens,
// tokens] if they are the same for all. nullopt: plain causal attention.
std::optional<at::Tensor> visible_of(std::span<const QuerySpan> spans, int64_t tokens,
                                     int64_t window) {
  const bool joint =
      std::ranges::any_of(spans, [](const QuerySpan& s) { return !s.joint.empty(); });
  if (joint) {
    std::vector<at::Tensor> each;
    for (const QuerySpan& span : spans)
      each.push_back(visible_positions({0, tokens, 0, nullptr, span.joint}, window));
    return at::stack(each).unsqueeze(1);
  }
  if (window > 0 && window < tokens) return visible_positions({0, tokens}, window);
  return {};
}

// q: [sequences, heads, tokens, dim]. The query heads that share a KV head are rows of one product.
at::Tensor attend_table(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const std::optional<at::Tensor>& visible, double scale) {
  const int64_t n = q.size(0), heads = q.size(1), tokens = q.size(2), dim = q.size(3),
                kv_heads = k.size(1), group = heads / kv_heads;
  const at::Tensor rows = q.reshape({n, kv_heads, group * tokens, dim}) * scale;
  at::Tensor mask = at::full({tokens, tokens}, -INFINITY, q.options()).triu_(1);
  if (visible) {
    mask = at::zeros(visible->sizes(), q.options()).masked_fill_(visible->logical_not(), -INFINITY);
    if (mask.dim() > 2) mask = mask.unsqueeze(1);  // [n, 1, 1, tokens, tokens]
  }
  const at::Tensor scores =
      at::matmul(rows, k.transpose(2, 3)).view({n, kv_heads, group, tokens, tokens}) + mask;
  const at::Tensor weights = at::softmax(scores, -1, at::kFloat)
                                 .to(q.scalar_type())
                                 .view({n, kv_heads, group * tokens, tokens});
  return at::matmul(weights, v).view({n, heads, tokens, dim});
}

}  // namespace

at::Tensor sequence_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              std::span<const QuerySpan> spans, const AttentionRule& rule) {
  int64_t covered = 0;
  for (const QuerySpan& span : spans) {
    TORCH_CHECK(span.context == 0 && span.begin == covered && span.queries > 0,
                "sequence_attention: spans must be whole sequences side by side");
    covered += span.queries;
  }
  TORCH_CHECK(q.dim() == 3 && k.sizes() == v.sizes() && covered == q.size(0) &&
                  k.size(0) == q.size(0) && q.size(1) % k.size(1) == 0,
              "sequence_attention: q ", q.sizes(), ", k ", k.sizes(), ", spans over ", covered,
              " tokens");
  const Padding padding(spans);
  const at::Tensor pq = padding.pad(q), pk = padding.pad(k), pv = padding.pad(v);
  const int64_t longest = padding.longest();
  const double scale = rule.scale_of(q.size(2));
  std::optional<at::Tensor> visible = visible_of(spans, longest, rule.window);
  if (visible) visible = visible->to(q.device());
  if (longest <= kTableTokens) return padding.unpad(attend_table(pq, pk, pv, visible, scale));
  return padding.unpad(at::scaled_dot_product_attention(pq, pk, pv, visible, 0.0,
                                                        /*is_causal=*/!visible, scale,
                                                        /*enable_gqa=*/true));
}

}  // namespace valora::ops
