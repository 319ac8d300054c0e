// Which kinds of steps to capture before a step needs them. Independent of torch and GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "engine/graphs/step_kinds.h"

namespace valora {

// The largest steps of an engine.
struct StepLimits {
  int64_t sequences = 0;        // in a step
  int64_t tokens = 0;           // in a step
  int64_t sequence_tokens = 0;  // of one sequence
};

// Decodes of 1, 2, 4 and 8 short sequences, prompts alone, and a few tokens after cached ones, in
// this order; with `more`, then longer sequences, larger batches, and prompts beside decodes. rank:
// of the adapters that all tokens have; 0: none.
std::vector<ops::StepBounds> likely_bounds(const StepLimits& limits, int64_t rank, bool more);

class LikelyKinds {
 public:
  explicit LikelyKinds(const StepLimits& limits) : limits_(limits) {}

  // Adapters of this rank are loaded, so steps with them are likely.
  void expect(int64_t rank) {
    if (rank > 0) ranks_.insert(rank);
  }

  // The likeliest kind without a graph: first those that steps have had; unless `first`, of which
  // there can be none. changed: of kinds' changed outputs. merged: the merged weights and which
  // modules they have now, if any.
  template <typename Graph>
  std::optional<StepKind> next(const StepKinds<Graph>& kinds, const TouchedModules& touched,
                               const TouchedModules& changed, const StepKind& merged,
                               bool first) const {
    if (!kinds.has_room_ahead()) return std::nullopt;
    const auto usable = [&](const StepKind& kind) {
      return touched.current(kind.touched) && changed.current(kind.changed) &&
             (!kind.merged ||
              (kind.merged == merged.merged && kind.merged_modules == merged.merged_modules));
    };
    if (const StepKind* met = kinds.find_waiting(usable)) return *met;
    for (const bool more : {false, true}) {
      if (first && more) break;
      for (const int64_t rank : ranks_)
        for (const ops::StepBounds& bounds : likely_bounds(limits_, rank, more)) {
          StepKind kind{.bounds = bounds};
          if (rank > 0) kind.touched = touched.all();
          if (!kinds.has(kind)) return kind;
        }
    }
    return std::nullopt;
  }

 private:
  StepLimits limits_;
  std::set<int64_t> ranks_{0};
};

}  // namespace valora
