// Learns when idle nodes are used again: the rate of visits by the time since the last use, for
// groups of nodes that behave alike. So what leaves the pool is a matter of measured rates, where
// FastLibra (§5.1) and LRU assume how the worth of a node decays. Pure: time comes with the
// arguments. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "memory/tree_nodes.h"

namespace valora::memory {

class ReuseModel {
 public:
  static constexpr int kBuckets = 32;  // of idle times, two per doubling
  using Row = std::array<double, kBuckets>;

  // By their visits in the window.
  static int group_of(const AdapterNode& node, Slot slot);
  // Prefixes of several sequences by their visits, those of one conversation by its turns. All
  // blocks of a conversation are in one group, or it would leave in parts, and each part would keep
  // its next request waiting.
  static int group_of(const KvNode& node);

  ReuseModel() { refresh(); }

  // A node of the group was visited, `idle` seconds after its last use.
  void visit(int group, double idle) { ++visits_[group][bucket_of(idle)]; }
  // A node of the group, last used `idle` seconds ago, was idle for the last `seconds` of them, or
  // since its last use. It stands for `nodes` nodes.
  void wait(int group, double idle, double seconds, double nodes = 1);
  // Multiplies the weight of all observations.
  void fade(double factor);
  // Takes the observations into account.
  void refresh();

  // Logarithm of the visits per second of room for a node that was last used `idle` seconds ago:
  // the expected visits (0 or 1) while it is kept, over the expected time until the visit or until
  // it is given up, for the time to keep it that is best (Gittins' index).
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
