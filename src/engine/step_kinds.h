// The kinds of steps of which graphs are kept, and when a kind gets one. Needs neither torch nor a
// GPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "ops/step_bounds.h"

namespace valora {

// Steps whose launches are the same but for what is in the tables.
struct StepKind {
  ops::StepBounds bounds;
  // Modules that adapters touch beside the weights, a bit each. Those of more adapters than the
  // step has make a step slower by empty launches, but a kind more frequent.
  std::vector<uint64_t> touched;
  const void* merged = nullptr;      // the merged weights; null: none
  std::vector<bool> merged_modules;  // that the merged adapter touches
  bool operator==(const StepKind&) const = default;
};

// All modules that any adapter of a step so far touches. It grows with adapters of other targets,
// each time of which the kinds before are no longer met; it never depends on who else is in a step.
class TouchedModules {
 public:
  // → the modules to launch for: none if the step has no adapters
  const std::vector<uint64_t>& of_step(const std::vector<uint64_t>& touched) {
    if (std::ranges::all_of(touched, [](uint64_t bits) { return bits == 0; })) return none_;
    all_.resize(std::max(all_.size(), touched.size()));
    for (size_t i = 0; i < touched.size(); ++i) all_[i] |= touched[i];
    return all_;
  }

 private:
  std::vector<uint64_t> all_, none_;
};

// Whether captures are tried. A lack of memory passes; other failures mostly come again.
class CaptureTries {
 public:
  // Counts a step that would be captured. → whether to try.
  bool now() {
    if (ended()) return false;
    if (pause_ > 0) --pause_;
    return pause_ == 0;
  }
  void succeeded() { next_pause_ = kFirstPause; }
  void lacked_memory() {
    pause_ = next_pause_;
    next_pause_ = std::min(2 * next_pause_, kLongestPause);
  }
  void failed() { ++failures_; }
  bool ended() const { return failures_ >= kMostFailures; }
  int64_t pause() const { return pause_; }

  static constexpr int kMostFailures = 3;
  static constexpr int64_t kFirstPause = 500, kLongestPause = 64'000;  // steps

 private:
  int failures_ = 0;
  int64_t pause_ = 0, next_pause_ = kFirstPause;
};

// The graphs of kinds, the least recently used of which ends when there are too many.
template <typename Graph>
class StepKinds {
 public:
  struct Limits {
    size_t graphs = 128;
    size_t waiting = 512;  // kinds that were seen and have no graph
    int seen_before = 2;   // steps of a kind that run without a graph first
  };
  explicit StepKinds(Limits limits = {}) : limits_(limits) {}

  // Null: the kind has none. Valid until the next insert().
  Graph* find(const StepKind& kind) { return touch(graphs_, kind); }

  // Counts a step of a kind without a graph. → whether it is time for one.
  bool due(const StepKind& kind) {
    int* seen = touch(waiting_, kind);
    if (!seen) {
      if (waiting_.size() == limits_.waiting) waiting_.pop_back();
      waiting_.emplace_front(kind, 0);
      seen = &waiting_.front().second;
    }
    if (*seen >= limits_.seen_before) return true;
    ++*seen;
    return false;
  }

  // make(): a graph of a kind that has none. If it throws, nothing has changed, but that the least
  // recently used one has ended to make room.
  template <typename Make>
  Graph& insert(const StepKind& kind, Make&& make) {
    while (graphs_.size() >= limits_.graphs) graphs_.pop_back();
    graphs_.emplace_front(kind, make());
    std::erase_if(waiting_, [&](const auto& entry) { return entry.first == kind; });
    return graphs_.front().second;
  }

  size_t graphs() const { return graphs_.size(); }
  size_t waiting() const { return waiting_.size(); }

 private:
  template <typename Value>
  using Entries = std::list<std::pair<StepKind, Value>>;  // the last used first

  template <typename Value>
  static Value* touch(Entries<Value>& entries, const StepKind& kind) {
    const auto it = std::ranges::find_if(entries, [&](const auto& e) { return e.first == kind; });
    if (it == entries.end()) return nullptr;
    entries.splice(entries.begin(), entries, it);
    return &it->second;
  }

  Limits limits_;
  Entries<Graph> graphs_;
  Entries<int> waiting_;
};

}  // namespace valora
