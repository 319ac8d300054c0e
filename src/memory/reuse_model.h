// Learns when idle nodes are used again: the rate of visits by time since the last use, for groups
// of nodes that behave alike. Eviction then follows measured rates, where FastLibra (§5.1) and LRU
// assume how the value of a node decays. Pure: time is passed in. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "memory/tree_nodes.h"

namespace valora::memory {

class ReuseModel {
 public:
  static constexpr int kBuckets = 32;  // of idle time, two per doubling
  using Row = std::array<double, kBuckets>;

  // Grouped by visits within the window.
  static int group_of(const AdapterNode& node, Slot slot);
  // Prefixes shared by several sequences are grouped by uses, those of one conversation by its
  // turns. All blocks of a conversation are in one group; otherwise it would be evicted in parts,
  // and each missing part would delay its next request.
  static int group_of(const KvNode& node);

  ReuseModel() { refresh(); }

  // Records a visit to a node of the group, `idle` seconds after its last use.
  void visit(int group, double idle) { ++visits_[group][bucket_of(idle)]; }
  // Records idle time: a node of the group, last used `idle` seconds ago, was idle for the last
  // `seconds`, or since its last use if that is shorter. It represents `nodes` nodes.
  void wait(int group, double idle, double seconds, double nodes = 1);
  // Scales the weight of all observations.
  void fade(double factor);
  // Recomputes the rates from the observations.
  void refresh();

  // Logarithm of the visits per second from keeping a node last used `idle` seconds ago: the
  // expected visits (0 or 1) over the expected time until the visit or until it is given up,
  // maximised over the time to keep it (Gittins index).
  double log_rate(int group, double idle) const { return log_rates_[group][bucket_of(idle)]; }

 private:
  static constexpr int kGroupsOfAKind = 8;
  using Table = std::array<Row, 2 * kGroupsOfAKind>;  // adapters, then KV

  static int bucket_of(double idle);
  static Row smoothed(const Row& row);
  static Row log_rates_of(const Row& rates);
  void refresh_kind(int first_group, double pooled_weight);

  Table visits_{}, seconds_{}, log_rates_{};
};

}  // namespace valora::memory
