// The kinds of steps with cached graphs, and when a kind gets one. Independent of torch and GPUs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "ops/step/step_bounds.h"

namespace valora {

// Steps with identical launches except for the contents of the tables.
struct StepKind {
  ops::StepBounds bounds;
  // Modules that adapters touch through LoRA, one bit each. Including modules of adapters outside
  // the step costs empty launches, but lets more steps share a kind.
  std::vector<uint64_t> touched;
  std::vector<uint64_t> changed;     // modules whose outputs they change, likewise
  const void* merged = nullptr;      // the merged weights; null: none
  std::vector<bool> merged_modules;  // modules that the merged adapter touches
  bool operator==(const StepKind&) const = default;
};

// The union of modules touched by the adapters of all steps so far. When an adapter with new
// targets extends it, earlier kinds are no longer used; it never depends on which adapters share a
// step.
class TouchedModules {
 public:
  // The modules to launch for: none if the step has no adapters.
  const std::vector<uint64_t>& of_step(const std::vector<uint64_t>& touched) {
    if (!any(touched)) return none_;
    add(touched);
    return all_;
  }
  // As if a step had touched these.
  void add(const std::vector<uint64_t>& touched) {
    if (!any(touched)) return;
    all_.resize(std::max(all_.size(), touched.size()));
    for (size_t i = 0; i < touched.size(); ++i) all_[i] |= touched[i];
  }
  static bool any(const std::vector<uint64_t>& touched) {
    return std::ranges::any_of(touched, [](uint64_t bits) { return bits != 0; });
  }
  const std::vector<uint64_t>& all() const { return all_; }
  // False for the modules of kinds that no step will have any more.
  bool current(const std::vector<uint64_t>& touched) const {
    return touched.empty() || touched == all_;
  }

 private:
  std::vector<uint64_t> all_, none_;
};

// Decides whether to try a capture. A lack of memory may pass; other failures mostly recur.
class CaptureTries {
 public:
  // Counts a step that qualifies for capture. Returns true if it should be tried.
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

// An LRU cache of graphs by kind.
template <typename Graph>
class StepKinds {
 public:
  struct Limits {
    size_t graphs = 128;
    size_t waiting = 512;  // kinds seen that have no graph yet
    int seen_before = 2;   // steps of a kind that run before it gets a graph
    size_t ahead = 96;     // graphs, beyond which none is made for a kind that is not due
  };
  explicit StepKinds(Limits limits = {}) : limits_(limits) {}

  // Null if the kind has no graph. Valid until the next insert().
  Graph* find(const StepKind& kind) { return touch(graphs_, kind); }

  // Counts a step of a kind without a graph. Returns true if it should get one.
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

  // make(): creates the graph of a kind that has none. If it throws, nothing changes, except that
  // the least recently used graph may have been evicted.
  template <typename Make>
  Graph& insert(const StepKind& kind, Make&& make) {
    while (graphs_.size() >= limits_.graphs) graphs_.pop_back();
    return *graph_of(graphs_.begin(), kind, make);
  }
  // The same for a kind that no step needs now, while has_room_ahead(): evicts nothing, and is the
  // first to be evicted until a step uses it.
  template <typename Make>
  Graph& insert_ahead(const StepKind& kind, Make&& make) {
    return *graph_of(graphs_.end(), kind, make);
  }
  bool has_room_ahead() const { return graphs_.size() < std::min(limits_.ahead, limits_.graphs); }

  bool has(const StepKind& kind) const {
    return std::ranges::any_of(graphs_, [&](const auto& e) { return e.first == kind; });
  }
  // The kind that a step had last among those without a graph for which wanted() is true; null:
  // none.
  template <typename Wanted>
  const StepKind* find_waiting(Wanted&& wanted) const {
    const auto it = std::ranges::find_if(waiting_, [&](const auto& e) { return wanted(e.first); });
    return it == waiting_.end() ? nullptr : &it->first;
  }
  template <typename Gone>
  void erase_if(Gone&& gone) {
    std::erase_if(graphs_, [&](const auto& e) { return gone(e.first); });
    std::erase_if(waiting_, [&](const auto& e) { return gone(e.first); });
  }

  size_t graphs() const { return graphs_.size(); }
  size_t waiting() const { return waiting_.size(); }

 private:
  template <typename Value>
  using Entries = std::list<std::pair<StepKind, Value>>;  // most recently used first

  template <typename Make>
  Graph* graph_of(typename Entries<Graph>::iterator before, const StepKind& kind, Make&& make) {
    const auto it = graphs_.emplace(before, kind, make());
    std::erase_if(waiting_, [&](const auto& entry) { return entry.first == kind; });
    return &it->second;
  }

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
