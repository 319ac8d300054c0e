#include "memory/reuse_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace valora::memory {
namespace {

constexpr double kFirstBucket = 0.25;  // end of the first bucket, in seconds

// Weights of the priors, in visits: kAssumed for the overall rate before anything is known, the
// others for a group's rate before it departs from the rest of its kind. KV blocks of one request
// are visited together, so each is weak evidence.
constexpr double kAssumed = 1;
constexpr double kPooledAdapters = 5;
constexpr double kPooledKv = 200;

// Upper ends of the buckets, in seconds.
constexpr ReuseModel::Row kEnds = [] {
  ReuseModel::Row ends{kFirstBucket, kFirstBucket * std::numbers::sqrt2};
  for (size_t b = 2; b < ends.size(); ++b) ends[b] = 2 * ends[b - 2];
  return ends;
}();

double end_of(int bucket) { return kEnds[bucket]; }
double begin_of(int bucket) { return bucket == 0 ? 0 : kEnds[bucket - 1]; }

// Falls with idle time, as LRU assumes.
double assumed_rate(int bucket) { return 0.5 / (end_of(bucket) + 5); }

int doublings(uint32_t count) { return count > 1 ? std::bit_width(count - 1) : 0; }

}  // namespace

int ReuseModel::bucket_of(double idle) {
  if (idle < kFirstBucket) return 0;
  const int doublings = std::ilogb(idle / kFirstBucket);
  const int bucket = std::min(kBuckets - 1, 2 * doublings + 1);
  return bucket < kBuckets - 1 && idle >= end_of(bucket) ? bucket + 1 : bucket;
}

int ReuseModel::group_of(const AdapterNode& node, Slot slot) {
  return std::min(kGroupsOfAKind - 1, doublings(node.visits.count(slot)));
}

int ReuseModel::group_of(const KvNode& node) {
  constexpr int kHalf = kGroupsOfAKind / 2;
  if (node.shared) return kGroupsOfAKind + std::min(kHalf - 1, doublings(node.uses) / 2);
  return kGroupsOfAKind + kHalf + std::min(kHalf - 1, doublings(node.turn));
}

void ReuseModel::wait(int group, double idle, double seconds, double nodes) {
  const double from = std::max(0.0, idle - seconds);
  for (int b = bucket_of(from); b <= bucket_of(idle); ++b) {
    const double end = b == kBuckets - 1 ? idle : std::min(idle, end_of(b));
    seconds_[group][b] += nodes * std::max(0.0, end - std::max(from, begin_of(b)));
  }
}

void ReuseModel::fade(double factor) {
  for (Table* table : {&visits_, &seconds_})
    for (Row& row : *table)
      for (double& value : row) value *= factor;
}

// Two passes with weights 1, 2, 1.
ReuseModel::Row ReuseModel::smoothed(const Row& row) {
  Row out = row;
  for (int pass = 0; pass < 2; ++pass) {
    const Row in = out;
    for (int b = 0; b < kBuckets; ++b)
      out[b] = (in[std::max(0, b - 1)] + 2 * in[b] + in[std::min(kBuckets - 1, b + 1)]) / 4;
  }
  return out;
}

// rates: visits per second of an idle node, per bucket.
ReuseModel::Row ReuseModel::log_rates_of(const Row& rates) {
  Row used;   // share of the nodes reaching a bucket that are visited within it
  Row stays;  // mean seconds that those nodes spend in the bucket
  for (int b = 0; b < kBuckets; ++b) {
    used[b] = -std::expm1(-rates[b] * (end_of(b) - begin_of(b)));
    stays[b] = used[b] / rates[b];
  }
  Row logs;
  for (int from = 0; from < kBuckets; ++from) {
    double left = 1, visits = 0, time = 0, best = 0;
    for (int b = from; b < kBuckets; ++b) {
      visits += left * used[b];
      time += left * stays[b];
      left *= 1 - used[b];
      if (visits > best * time) best = visits / time;
    }
    logs[from] = std::log(best);
  }
  return logs;
}

void ReuseModel::refresh_kind(int first_group, double pooled_weight) {
  Row visits{}, seconds{};
  for (int g = first_group; g < first_group + kGroupsOfAKind; ++g) {
    for (int b = 0; b < kBuckets; ++b) {
      visits[b] += visits_[g][b];
      seconds[b] += seconds_[g][b];
    }
  }
  visits = smoothed(visits);
  seconds = smoothed(seconds);
  Row pooled;
  for (int b = 0; b < kBuckets; ++b)
    pooled[b] = (visits[b] + kAssumed) / (seconds[b] + kAssumed / assumed_rate(b));
  const Row pooled_logs = log_rates_of(pooled);
  for (int g = first_group; g < first_group + kGroupsOfAKind; ++g) {
    if (visits_[g] == Row{} && seconds_[g] == Row{}) {  // true of most groups in most workloads
      log_rates_[g] = pooled_logs;
      continue;
    }
    const Row own_visits = smoothed(visits_[g]), own_seconds = smoothed(seconds_[g]);
    Row rates;
    for (int b = 0; b < kBuckets; ++b)
      rates[b] = (own_visits[b] + pooled_weight) / (own_seconds[b] + pooled_weight / pooled[b]);
    log_rates_[g] = log_rates_of(rates);
  }
}

void ReuseModel::refresh() {
  refresh_kind(0, kPooledAdapters);
  refresh_kind(kGroupsOfAKind, kPooledKv);
}

}  // namespace valora::memory
