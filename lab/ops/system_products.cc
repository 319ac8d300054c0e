#include "lab/ops/system_products.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/linear/low_rank.h"
#include "lab/ops/adapter_copies.h"
#include "lab/ops/rank_row_loops.h"
#include "ops/device/cpu_types.h"
#include "ops/device/parallel.h"

namespace valora::bench {
namespace {

using kernels::bf16;
using kernels::LoraSegment;
using ops::LoraBatch;

void add_with_tile(const at::Tensor& x, int module, std::span<const LoraSegment> segments,
                   const kernels::CpuTile& tile, const at::Tensor& y) {
  kernels::low_rank<bf16>(ops::raw<bf16>(x), x.size(0), x.size(1), y.mutable_data_ptr<float>(),
                          y.size(1), module, segments, ops::torch_parallel(), tile);
}

class PunicaProducts final : public ops::LowRankProducts {
 public:
  void add(const at::Tensor& x, const LoraBatch& lora, int module, const at::Tensor& y) override {
    constexpr int64_t kRankStep = 64;
    std::vector<LoraSegment> segments;
    for (size_t i = 0; i < lora.segments().size(); ++i) {
      const LoraSegment& segment = lora.segments()[i];
      const kernels::LoraModule* m = kernels::touched_module(segment, module);
      if (!m) continue;
      const ops::AdapterWeights& copy = copies_.get(lora, i, module, [&](const PlainFactors& f) {
        return panel_adapter(f, kRankStep, m->scale);
      });
      segments.push_back(
          {segment.token_begin, segment.token_end, copy.modules(), segment.coefficient});
    }
    add_with_tile(x, 0, segments, {16, 64 / kernels::kPanelOutputs, 1}, y);
  }

 private:
  AdapterCopies<ops::AdapterWeights> copies_;
};

// Rows of A and Bᵀ, each contiguous.
struct RankRowFactors {
  at::Tensor a, b;  // [rank, in], [rank, out]
};

RankRowFactors rank_rows_of(const PlainFactors& factors) {
  return {factors.a, factors.b.t().contiguous()};
}

struct TokenRows {
  int64_t token;
  float coefficient;
  const RankRowFactors* rows;
};

class SloraProducts final : public ops::LowRankProducts {
 public:
  void add(const at::Tensor& x, const LoraBatch& lora, int module, const at::Tensor& y) override {
    constexpr int64_t kLongRun = 16;
    std::vector<LoraSegment> long_runs;
    std::vector<TokenRows> tokens;
    for (size_t i = 0; i < lora.segments().size(); ++i) {
      const LoraSegment& segment = lora.segments()[i];
      const kernels::LoraModule* m = kernels::touched_module(segment, module);
      if (!m) continue;
      if (segment.token_end - segment.token_begin >= kLongRun) {
        long_runs.push_back(segment);
        continue;
      }
      const RankRowFactors& rows = copies_.get(lora, i, module, rank_rows_of);
      for (int64_t t = segment.token_begin; t < segment.token_end; ++t)
        tokens.push_back({t, segment.coefficient * m->scale, &rows});
    }
    if (!long_runs.empty()) add_with_tile(x, module, long_runs, {kernels::kMostTileRows, 1, 1}, y);
    if (!tokens.empty()) add_rows_of(tokens, x, y);
  }

 private:
  // Two launches: the dot products of all tokens, then their weighted sums.
  static void add_rows_of(const std::vector<TokenRows>& tokens, const at::Tensor& x,
                          const at::Tensor& y) {
    constexpr int64_t kRowsPerPiece = 4, kOutputsPerPiece = 128;
    const int64_t in = x.size(1), out = y.size(1), count = static_cast<int64_t>(tokens.size());
    int64_t most = 0;
    for (const TokenRows& t : tokens) most = std::max(most, t.rows->a.size(0));
    std::vector<float> low(static_cast<size_t>(count * most));
    const int64_t row_pieces = (most + kRowsPerPiece - 1) / kRowsPerPiece;
    ops::torch_parallel()(0, count * row_pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const TokenRows& t = tokens[i / row_pieces];
        const int64_t first = i % row_pieces * kRowsPerPiece,
                      last = std::min(first + kRowsPerPiece, t.rows->a.size(0));
        for (int64_t r = first; r < last; ++r)
          low[i / row_pieces * most + r] =
              t.coefficient *
              dot_row(ops::raw<bf16>(x) + t.token * in, ops::raw<bf16>(t.rows->a) + r * in, in);
      }
    });
    // Split by outputs only: several adapters may add to one token.
    const int64_t output_pieces = (out + kOutputsPerPiece - 1) / kOutputsPerPiece;
    ops::torch_parallel()(0, output_pieces, 1, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kOutputsPerPiece, last = std::min(out, end * kOutputsPerPiece);
      std::vector<const bf16*> parts;
      for (int64_t i = 0; i < count; ++i) {
        const TokenRows& t = tokens[i];
        parts.clear();
        for (int64_t r = 0; r < t.rows->b.size(0); ++r)
          parts.push_back(ops::raw<bf16>(t.rows->b) + r * out + first);
        add_rows(&low[i * most], parts.data(), static_cast<int64_t>(parts.size()), last - first,
                 y.mutable_data_ptr<float>() + t.token * out + first);
      }
    });
  }

  AdapterCopies<RankRowFactors> copies_;
};

// The tokens of one adapter with one coefficient.
struct Group {
  const ops::AdapterWeights* adapter;
  float coefficient;  // includes the adapter's scale
  const RankRowFactors* rows;
  std::vector<std::pair<int64_t, int64_t>> runs;
  int64_t tokens = 0;
};

class DloraProducts final : public ops::LowRankProducts {
 public:
  void add(const at::Tensor& x, const LoraBatch& lora, int module, const at::Tensor& y) override {
    const std::vector<Group> groups = groups_of(lora, module);
    if (groups.empty()) return;
    int64_t longest = 0;
    std::vector<float> coefficients;
    for (const Group& group : groups) {
      longest = std::max(longest, group.tokens);
      coefficients.push_back(group.coefficient);
    }
    const auto count = static_cast<int64_t>(groups.size());
    const at::Tensor padded = at::zeros({count, longest, x.size(1)}, x.options());
    each_run(groups, [&](int64_t group, int64_t at, int64_t begin, int64_t length) {
      padded.select(0, group).narrow(0, at, length).copy_(x.narrow(0, begin, length));
    });
    const RankRowFactors stacked = stack(groups, module);
    const at::Tensor low = at::einsum("nti,nri->ntr", {padded, stacked.a}) *
                           at::tensor(coefficients).to(x.scalar_type()).view({count, 1, 1});
    const at::Tensor sums = at::einsum("ntr,nro->nto", {low, stacked.b});
    each_run(groups, [&](int64_t group, int64_t at, int64_t begin, int64_t length) {
      y.narrow(0, begin, length).add_(sums.select(0, group).narrow(0, at, length));
    });
  }

 private:
  std::vector<Group> groups_of(const LoraBatch& lora, int module) {
    std::vector<Group> groups;
    for (size_t i = 0; i < lora.segments().size(); ++i) {
      const LoraSegment& segment = lora.segments()[i];
      const kernels::LoraModule* m = kernels::touched_module(segment, module);
      if (!m) continue;
      const float coefficient = segment.coefficient * m->scale;
      auto group = std::ranges::find_if(groups, [&](const Group& g) {
        return g.adapter == &lora.adapter(i) && g.coefficient == coefficient;
      });
      if (group == groups.end()) {
        const RankRowFactors& rows = copies_.get(lora, i, module, rank_rows_of);
        groups.push_back({&lora.adapter(i), coefficient, &rows, {}, 0});
        group = groups.end() - 1;
      }
      const int64_t length = segment.token_end - segment.token_begin;
      group->runs.emplace_back(segment.token_begin, length);
      group->tokens += length;
    }
    return groups;
  }

  template <typename Body>
  static void each_run(const std::vector<Group>& groups, Body&& body) {
    for (size_t g = 0; g < groups.size(); ++g) {
      int64_t at = 0;
      for (const auto& [begin, length] : groups[g].runs) {
        body(static_cast<int64_t>(g), at, begin, length);
        at += length;
      }
    }
  }

  // The stack of the last batch is kept, so that einsum copies no weights.
  RankRowFactors stack(const std::vector<Group>& groups, int module) {
    std::vector<const RankRowFactors*> wanted;
    for (const Group& group : groups) wanted.push_back(group.rows);
    const std::lock_guard lock(mutex_);
    Stack& kept = stacks_[module];
    if (kept.of == wanted) return kept.rows;
    int64_t rank = 0;
    for (const RankRowFactors* rows : wanted) rank = std::max(rank, rows->a.size(0));
    const auto stacked = [&](at::Tensor RankRowFactors::* factor) {
      const at::Tensor& first = wanted[0]->*factor;
      at::Tensor all =
          at::zeros({static_cast<int64_t>(wanted.size()), rank, first.size(1)}, first.options());
      for (size_t i = 0; i < wanted.size(); ++i) {
        const at::Tensor& one = wanted[i]->*factor;
        all.select(0, static_cast<int64_t>(i)).narrow(0, 0, one.size(0)).copy_(one);
      }
      return all;
    };
    kept = {wanted, {stacked(&RankRowFactors::a), stacked(&RankRowFactors::b)}};
    return kept.rows;
  }

  struct Stack {
    std::vector<const RankRowFactors*> of;
    RankRowFactors rows;
  };

  AdapterCopies<RankRowFactors> copies_;
  std::mutex mutex_;
  std::map<int, Stack> stacks_;  // by module
};

}  // namespace

std::unique_ptr<ops::LowRankProducts> slora_products() { return std::make_unique<SloraProducts>(); }
std::unique_ptr<ops::LowRankProducts> punica_products() {
  return std::make_unique<PunicaProducts>();
}
std::unique_ptr<ops::LowRankProducts> dlora_products() { return std::make_unique<DloraProducts>(); }

}  // namespace valora::bench
