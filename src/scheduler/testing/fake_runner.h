// A deterministic executor for tests. It stores simulated KV values and adapters in blocks; the
// next token depends on every value reachable through a sequence's block table. So a block that is
// shared, reused, evicted or copied by mistake changes the output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.h"
#include "memory/pool.h"
#include "scheduler/step_executor.h"

namespace valora::scheduler::testing {

inline constexpr int32_t kVocabulary =
    5;  // small, so that different sequences often share a prefix

// The simulated KV value of a token: depends on everything that a real model's KV depends on.
inline uint64_t kv_cell(const memory::KvIdentity& identity, int32_t token, int position,
                        uint64_t previous) {
  DigestBuilder builder;
  builder.add(identity.adapter).add(token).add(position).add(previous);
  if (const int64_t variant = identity.rope.variant(position); variant != 0) builder.add(variant);
  for (const memory::MediaSpan& span : identity.media) {
    if (position < span.token_begin || position >= span.token_begin + span.tokens) continue;
    builder.add(span.digest).add(position - span.token_begin);
  }
  return builder.finish().low;
}

inline int32_t next_token(std::span<const uint64_t> cells) {
  return static_cast<int32_t>(DigestBuilder().add(cells).finish().low % kVocabulary);
}

// The tokens that the fake model generates for a sequence on its own, without blocks.
inline std::vector<int32_t> generate_alone(const memory::KvIdentity& identity,
                                           std::vector<int32_t> tokens, int count) {
  std::vector<uint64_t> cells;
  std::vector<int32_t> generated;
  while (static_cast<int>(generated.size()) < count) {
    while (cells.size() < tokens.size()) {
      const int position = static_cast<int>(cells.size());
      cells.push_back(
          kv_cell(identity, tokens[position], position, cells.empty() ? 0 : cells.back()));
    }
    generated.push_back(next_token(cells));
    tokens.push_back(generated.back());
  }
  return generated;
}

class FakeRunner final : public StepExecutor {
 public:
  explicit FakeRunner(int32_t blocks, int32_t swap_blocks = 0)
      : cells_(size_t(blocks) * memory::kBlockTokens, 0xDEADBEEF),
        swap_(size_t(swap_blocks) * memory::kBlockTokens, 0xDEADBEEF) {}

  // Performs a copy in place of a mover.
  void copy(const memory::Move& move) {
    const auto size = size_t{memory::kBlockTokens};
    const auto cells = [&](std::vector<uint64_t>& tier, memory::BlockId block) {
      return std::span(tier).subspan(size_t(block) * size, size);
    };
    if (move.kind == memory::MoveKind::kLoadAdapter) {
      for (size_t i = 0; i < move.blocks.size(); ++i)
        std::ranges::fill(cells(cells_, move.blocks[i]), panel(move.key, i));
    } else if (move.kind == memory::MoveKind::kReadKv) {
      std::ranges::copy(cells(swap_, move.swapped), cells(cells_, move.blocks[0]).begin());
    } else {
      std::ranges::copy(cells(cells_, move.blocks[0]), cells(swap_, move.swapped).begin());
    }
  }

  // True if the adapter's blocks still hold the bytes that were loaded.
  bool intact(const memory::AdapterNode& node) { return holds(node.key, node.blocks); }
  bool holds(const Digest& adapter, std::span<const memory::BlockId> blocks) {
    for (size_t i = 0; i < blocks.size(); ++i)
      for (size_t at = 0; at < memory::kBlockTokens; ++at)
        if (cells_.at(size_t(blocks[i]) * memory::kBlockTokens + at) != panel(adapter, i))
          return false;
    return true;
  }

  std::vector<FailedRequest> prepare(const StepPlan&) override { return {}; }
  Result<std::vector<StepOutput>> run(const StepPlan& plan) override {
    for (const StepItem& item : plan.items) write(item);
    std::vector<StepOutput> outputs;
    for (const StepItem& item : plan.items)
      if (item.yields) outputs.push_back({item.request, next_tokens(item), {}, {}});
    return outputs;
  }

  // The KV values of all tokens of a request and of its first `drafts` drafts, as stored in its
  // blocks after run().
  std::vector<uint64_t> cells_of(const Request& request, size_t drafts = 0) {
    std::vector<uint64_t> cells;
    for (size_t i = 0; i < request.tokens.size() + drafts; ++i)
      cells.push_back(cell(request, static_cast<int>(i)));
    return cells;
  }

 private:
  static uint64_t panel(const Digest& adapter, size_t index) {
    return DigestBuilder().add(adapter).add(index).finish().low;
  }

  uint64_t& cell(const Request& request, int position) {
    const memory::BlockId block = request.table.blocks.at(position / memory::kBlockTokens);
    return cells_.at(size_t(block) * memory::kBlockTokens + position % memory::kBlockTokens);
  }

  void write(const StepItem& item) {
    const Request& request = *item.request;
    const memory::BlockTable& table = request.table;
    const int begin = request.computed_tokens, known = begin + item.known();
    uint64_t previous = begin == 0 ? 0 : cell(request, begin - 1);
    // In models with states, everything before the step is read from the state.
    if (!table.state.empty() && begin > 0)
      previous = state_in(table.start.empty() ? table.state : table.start);
    size_t kept = 0;
    for (int i = begin; i < begin + item.tokens; ++i) {
      const int32_t token = i < known ? request.tokens.at(i) : item.drafts.at(i - known);
      previous = cell(request, i) = kv_cell(request.identity, token, i, previous);
      if (kept < item.kept.size() && i + 1 == begin + item.kept[kept])
        put_state(table.kept.at(kept++), previous);
    }
    put_state(table.state, previous);
  }

  // All blocks of a state must belong to the same one.
  uint64_t state_in(std::span<const memory::BlockId> blocks) const {
    uint64_t value = cells_.at(size_t(blocks.front()) * memory::kBlockTokens);
    for (const memory::BlockId block : blocks)
      for (size_t at = 0; at < memory::kBlockTokens; ++at)
        if (cells_.at(size_t(block) * memory::kBlockTokens + at) != value) return 0xDEADBEEF;
    return value;
  }
  void put_state(std::span<const memory::BlockId> blocks, uint64_t value) {
    for (const memory::BlockId block : blocks)
      std::fill_n(cells_.begin() + block * memory::kBlockTokens, memory::kBlockTokens, value);
  }

  std::vector<SampledToken> next_tokens(const StepItem& item) {
    std::vector<SampledToken> tokens;
    for (size_t right = 0;; ++right) {
      tokens.push_back({.id = next_token(cells_of(*item.request, right))});
      if (right == item.drafts.size() || tokens.back().id != item.drafts[right]) return tokens;
    }
  }

  std::vector<uint64_t> cells_, swap_;
};

}  // namespace valora::scheduler::testing
