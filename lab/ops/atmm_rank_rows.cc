#include <algorithm>
#include <memory>
#include <random>

#include "lab/ops/atmm_rivals.h"
#include "lab/ops/cycle.h"
#include "lab/ops/rank_row_loops.h"
#include "ops/device/cpu_types.h"
#include "ops/device/parallel.h"

namespace valora::bench {
namespace {

using kernels::bf16;

constexpr int64_t kRowsPerPiece = 4;  // dot products per work item
constexpr int64_t kOutputsPerPiece = 512;

// The adapters of a layer in a pool: the rows of A and Bᵀ of all adapters, in random order.
struct Pool {
  at::Tensor a, b;                                       // [rows, hidden]
  std::vector<std::vector<const bf16*>> a_rows, b_rows;  // per adapter
  std::vector<float> coefficients;
};

Pool make_pool(const std::vector<AtmmAdapter>& adapters) {
  std::vector<at::Tensor> all_a, all_b;
  for (const AtmmAdapter& adapter : adapters) {
    all_a.push_back(adapter.a);
    all_b.push_back(adapter.b.t());
  }
  const at::Tensor a = at::cat(all_a), b = at::cat(all_b);
  std::vector<int64_t> places(static_cast<size_t>(a.size(0)));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  std::shuffle(places.begin(), places.end(), std::mt19937(6));
  const at::Tensor order = at::tensor(places);
  Pool pool{at::empty_like(a), at::empty_like(a), {}, {}, {}};
  pool.a.index_copy_(0, order, a);
  pool.b.index_copy_(0, order, b);
  size_t row = 0;
  for (const AtmmAdapter& adapter : adapters) {
    auto& a_rows = pool.a_rows.emplace_back();
    auto& b_rows = pool.b_rows.emplace_back();
    for (int64_t r = 0; r < adapter.a.size(0); ++r, ++row) {
      a_rows.push_back(ops::raw<bf16>(pool.a) + places[row] * a.size(1));
      b_rows.push_back(ops::raw<bf16>(pool.b) + places[row] * b.size(1));
    }
    pool.coefficients.push_back(adapter.coefficient);
  }
  return pool;
}

// Two launches: the dot products of all tokens, then the weighted sums of all tokens.
struct RankRows {
  Cycle<Pool> layers;
  at::Tensor x, y;
  std::vector<size_t> adapter_of_token;
  int64_t max_rank = 0;
  std::vector<float> low;  // [tokens, max_rank]

  void add() {
    const Pool& pool = layers.next();
    const int64_t tokens = x.size(0), hidden = x.size(1);
    const int64_t row_pieces = (max_rank + kRowsPerPiece - 1) / kRowsPerPiece;
    ops::torch_parallel()(0, tokens * row_pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        shrink(pool, i / row_pieces, i % row_pieces * kRowsPerPiece, hidden);
    });
    const int64_t output_pieces = (hidden + kOutputsPerPiece - 1) / kOutputsPerPiece;
    ops::torch_parallel()(0, tokens * output_pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        expand(pool, i / output_pieces, i % output_pieces * kOutputsPerPiece, hidden);
    });
  }

  void shrink(const Pool& pool, int64_t token, int64_t first, int64_t hidden) {
    const auto& rows = pool.a_rows[adapter_of_token[token]];
    const int64_t end = std::min(first + kRowsPerPiece, static_cast<int64_t>(rows.size()));
    for (int64_t r = first; r < end; ++r)
      low[token * max_rank + r] = pool.coefficients[adapter_of_token[token]] *
                                  dot_row(ops::raw<bf16>(x) + token * hidden, rows[r], hidden);
  }

  void expand(const Pool& pool, int64_t token, int64_t first, int64_t hidden) {
    const auto& rows = pool.b_rows[adapter_of_token[token]];
    thread_local std::vector<const bf16*> parts;
    parts.clear();
    for (const bf16* row : rows) parts.push_back(row + first);
    add_rows(&low[token * max_rank], parts.data(), static_cast<int64_t>(rows.size()),
             std::min(kOutputsPerPiece, hidden - first),
             ops::raw<bf16>(y) + token * hidden + first);
  }
};

}  // namespace

Contender rank_row_products(const AtmmProblem& problem) {
  std::vector<Pool> pools;
  for (const auto& adapters : problem.layers) pools.push_back(make_pool(adapters));
  const at::Tensor y = problem.output(at::kBFloat16);
  const auto state =
      std::make_shared<RankRows>(RankRows{Cycle(std::move(pools)), problem.x, y, {}, 0, {}});
  for (const AtmmRun& run : problem.runs)
    state->adapter_of_token.insert(state->adapter_of_token.end(), run.end - run.begin, run.adapter);
  for (const AtmmAdapter& adapter : problem.layers.front())
    state->max_rank = std::max(state->max_rank, adapter.a.size(0));
  state->low.resize(static_cast<size_t>(problem.shape.tokens() * state->max_rank));
  return adding("slora", y, [state] { state->add(); });
}

}  // namespace valora::bench
