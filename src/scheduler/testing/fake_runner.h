// A deterministic executor for tests. It stores simulated KV values in blocks, and the next token
// depends on all values that a sequence's block table leads to. So a block that is shared, reused
// or evicted by mistake changes the output.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.h"
#include "memory/kv_cache.h"
#include "scheduler/step_executor.h"

namespace valora::scheduler::testing {

inline constexpr int32_t kVocabulary =
    5;  // small, so that different sequences often share a prefix

// The simulated KV value of a token: depends on all that a real model's KV depends on.
inline uint64_t kv_cell(const memory::KvIdentity& identity, int32_t token, int position,
                        uint64_t previous) {
  DigestBuilder builder;
  builder.add(identity.adapter).add(token).add(position).add(previous);
  for (const memory::MediaSpan& span : identity.media) {
    if (position < span.token_begin || position >= span.token_begin + span.tokens) continue;
    builder.add(span.digest).add(position - span.token_begin);
  }
  return builder.finish().low;
}

inline int32_t next_token(std::span<const uint64_t> cells) {
  return static_cast<int32_t>(DigestBuilder().add(cells).finish().low % kVocabulary);
}

// The tokens that the fake model generates for a sequence alone, without blocks.
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
  explicit FakeRunner(int32_t blocks) : cells_(size_t(blocks) * memory::kBlockTokens, 0xDEADBEEF) {}

  std::vector<FailedRequest> prepare(const StepPlan&) override { return {}; }
  Result<std::vector<StepOutput>> run(const StepPlan& plan) override {
    for (const StepItem& item : plan.items) write(item);
    std::vector<StepOutput> outputs;
    for (const StepItem& item : plan.items)
      if (item.yields) outputs.push_back({item.request, {read(*item.request)}, {}, {}});
    return outputs;
  }

 private:
  uint64_t& cell(const Request& request, int position) {
    const memory::BlockId block = request.table.blocks.at(position / memory::kBlockTokens);
    return cells_.at(size_t(block) * memory::kBlockTokens + position % memory::kBlockTokens);
  }

  void write(const StepItem& item) {
    const Request& request = *item.request;
    for (int i = request.computed_tokens; i < request.computed_tokens + item.tokens; ++i) {
      cell(request, i) =
          kv_cell(request.identity, request.tokens.at(i), i, i == 0 ? 0 : cell(request, i - 1));
    }
  }

  int32_t read(const Request& request) {
    std::vector<uint64_t> cells;
    for (size_t i = 0; i < request.tokens.size(); ++i)
      cells.push_back(cell(request, static_cast<int>(i)));
    return next_token(cells);
  }

  std::vector<uint64_t> cells_;
};

}  // namespace valora::scheduler::testing
