// Pools, limits and policies for random schedules (random_schedule.h).
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "memory/pool.h"
#include "scheduler/scheduler.h"

namespace valora::scheduler::testing {

struct RandomWorld {
  int32_t blocks;
  SchedulerConfig config;
  int max_waiting = 12;       // no more requests arrive while this many wait
  uint64_t preemptions = 30;  // least number of preemptions expected in 3,000 steps
  bool prefix_caching = true;
  bool erratic_policy = false;
  std::string policy = "unmerged";
  memory::PoolConfig pool;  // the number of blocks comes from above
  std::vector<int32_t> adapter_blocks = {0, 0};
  bool faults = false;            // failing and slow copies, a pool that shrinks and grows
  bool encodes = false;           // images are encoded between steps
  bool starves = false;           // allocations fail
  bool keeps = false;             // adapters are pinned and unpinned
  bool joint = false;             // the tokens of an image attend to each other
  memory::RopeLengths rope = {};  // limit and kind; requests set the rest
  // Instead of the policy named above; null: that one.
  std::unique_ptr<Policy> (*make)() = nullptr;
};

// Merging pays off after a few steps, so valora changes its mode often.
inline constexpr StepCosts kCheapMerges{.step = 1e-3,
                                        .prefill_token = 1e-4,
                                        .decode_token = 1e-4,
                                        .segment = 2e-4,
                                        .rank = 1e-5,
                                        .token_rank = 1e-6,
                                        .merge = 1e-3};

inline const SchedulerConfig kTiny{.max_num_seqs = 5, .max_num_batched_tokens = 9};
inline const SchedulerConfig kSmall{.max_num_seqs = 8, .max_num_batched_tokens = 40};
inline const SchedulerConfig kMedium{.max_num_seqs = 8, .max_num_batched_tokens = 60};
inline const std::vector<int32_t> kSevenAdapters = {2, 3, 4, 2, 5, 1, 3};  // blocks of each

inline SchedulerConfig with_cheap_merges(SchedulerConfig config, bool in_place = false) {
  config.costs = kCheapMerges;
  config.merge_in_place = in_place;
  return config;
}

inline SchedulerConfig preparing(SchedulerConfig config, int tokens) {
  config.max_preparing_tokens = tokens;
  return config;
}

// So small that requests are preempted and blocks evicted.
inline const RandomWorld kRandomWorlds[] = {
    {.blocks = 12, .config = kSmall},
    {.blocks = 7, .config = kTiny, .max_waiting = 6},
    {.blocks = 40,
     .config = {.max_num_seqs = 24, .max_num_batched_tokens = 256},
     .max_waiting = 30},
    {.blocks = 2,
     .config = {.max_num_seqs = 4, .max_num_batched_tokens = 16},
     .max_waiting = 4,
     .preemptions = 0},
    {.blocks = 12, .config = {.max_num_seqs = 8, .max_num_batched_tokens = 1}, .preemptions = 0},
    {.blocks = 12, .config = kSmall, .erratic_policy = true},
    {.blocks = 12, .config = kSmall, .policy = "merged"},
    {.blocks = 7, .config = kTiny, .max_waiting = 6, .policy = "mixture"},
    {.blocks = 24,
     .config = kSmall,
     .preemptions = 0,
     .pool = {.swap_blocks = 24},
     .adapter_blocks = kSevenAdapters,
     .faults = true},
    {.blocks = 30,
     .config = kMedium,
     .preemptions = 0,
     .policy = "mixture",
     .pool = {.swap_blocks = 8},
     .adapter_blocks = {2, 3, 4, 2, 5, 1, 3, 2, 2, 2},
     .faults = true},
    {.blocks = 30,
     .config = kMedium,
     .preemptions = 0,
     .policy = "merged",
     .pool = {.swap_blocks = 100},
     .adapter_blocks = {9, 9, 9},
     .faults = true},
    {.blocks = 30,
     .config = kMedium,
     .preemptions = 0,
     .pool = {.swap_blocks = 20, .adapter_blocks = 9},
     .adapter_blocks = kSevenAdapters,
     .faults = true},
    {.blocks = 12, .config = with_cheap_merges(kSmall), .policy = "valora"},
    {.blocks = 24,
     .config = with_cheap_merges(kMedium, true),
     .preemptions = 0,
     .policy = "valora",
     .pool = {.swap_blocks = 24},
     .adapter_blocks = {2, 3, 4},
     .faults = true},
    {.blocks = 24,
     .config = kMedium,
     .preemptions = 0,
     .pool = {.history = false},
     .adapter_blocks = kSevenAdapters,
     .faults = true},
    {.blocks = 12, .config = preparing(kSmall, 40), .encodes = true},
    {.blocks = 7, .config = preparing(kTiny, 1), .max_waiting = 6, .encodes = true},
    {.blocks = 12, .config = kSmall, .preemptions = 10, .policy = "merged", .encodes = true},
    {.blocks = 12, .config = with_cheap_merges(kSmall), .policy = "valora", .encodes = true},
    {.blocks = 24,
     .config = kSmall,
     .preemptions = 0,
     .pool = {.swap_blocks = 24},
     .adapter_blocks = kSevenAdapters,
     .faults = true,
     .encodes = true},
    {.blocks = 12, .config = kSmall, .rope = {.limit = 40}},
    {.blocks = 24,
     .config = kSmall,
     .preemptions = 0,
     .pool = {.swap_blocks = 24},
     .rope = {.limit = 56, .each = true}},
    {.blocks = 12, .config = kSmall, .rope = {.limit = 24, .each = true, .of_prompt = true}},
};

// Sequences with a state in addition to their KV, whose prefixes end at checkpoints.
inline const RandomWorld kStateWorlds[] = {
    {.blocks = 24, .config = kSmall, .preemptions = 10, .pool = {.state_blocks = 1}},
    {.blocks = 24,
     .config = kTiny,
     .max_waiting = 6,
     .preemptions = 3,
     .pool = {.state_blocks = 3}},
    {.blocks = 80, .config = kMedium, .preemptions = 0, .pool = {.state_blocks = 9}},
    {.blocks = 30,
     .config = kSmall,
     .preemptions = 0,
     .erratic_policy = true,
     .pool = {.state_blocks = 2}},
    {.blocks = 34,
     .config = with_cheap_merges(kMedium, true),
     .preemptions = 0,
     .policy = "valora",
     .pool = {.state_blocks = 2},
     .adapter_blocks = {2, 3, 4},
     .faults = true},
    {.blocks = 34,
     .config = kMedium,
     .preemptions = 0,
     .pool = {.state_blocks = 2, .history = false},
     .adapter_blocks = kSevenAdapters,
     .faults = true},
    {.blocks = 70,
     .config = kMedium,
     .preemptions = 0,
     .pool = {.state_blocks = 2, .adapter_blocks = 9},
     .adapter_blocks = kSevenAdapters,
     .faults = true,
     .encodes = true},
};

inline const RandomWorld kJointWorlds[] = {
    {.blocks = 12, .config = kMedium, .preemptions = 10, .joint = true},
    {.blocks = 24,
     .config = preparing(kMedium, 40),
     .preemptions = 0,
     .pool = {.swap_blocks = 24},
     .adapter_blocks = kSevenAdapters,
     .faults = true,
     .encodes = true,
     .joint = true},
};

// Each world also runs with dependencies between adapters and KV, unless adapters have a fixed
// share.
inline std::vector<RandomWorld> random_worlds() {
  std::vector<RandomWorld> all;
  const auto add = [&](std::span<const RandomWorld> worlds, bool both) {
    for (RandomWorld world : worlds) {
      all.push_back(world);
      if (!both || world.pool.adapter_blocks) continue;
      world.pool.dependencies = true;
      all.push_back(world);
    }
  };
  add(kRandomWorlds, true);
  add(kJointWorlds, false);
  add(kStateWorlds, true);
  return all;
}

// Memory settings for a pool of `blocks` blocks whose adapters take at most 5.
inline std::vector<memory::PoolConfig> ways_to_keep(int32_t blocks) {
  return {{.swap_blocks = 24},
          {},
          {.swap_blocks = 3, .dependencies = true},
          {.swap_blocks = 24, .dependencies = true},
          {.history = false},
          {.swap_blocks = 24, .history = false},
          {.swap_blocks = 24, .adapter_blocks = std::max(6, blocks - 3)}};
}

// Pools that just hold some of the adapters together, have one block fewer, or one more.
inline std::vector<RandomWorld> filled_worlds() {
  const std::vector<int32_t> equal(6, 5), mixed = {3, 5, 2, 4, 1, 3};
  const std::vector<std::pair<std::vector<int32_t>, int32_t>> fillings = {
      {equal, 10}, {equal, 20}, {mixed, 8}, {mixed, 14}};
  std::vector<RandomWorld> all;
  int number = 0;
  for (const PolicyRow& policy : policies())
    for (const auto& [adapters, filling] : fillings)
      for (const int32_t blocks : {filling - 1, filling, filling + 1})
        for (const memory::PoolConfig& pool : ways_to_keep(blocks)) {
          ++number;
          all.push_back({.blocks = blocks,
                         .config = with_cheap_merges(kMedium),
                         .preemptions = 0,
                         .policy = std::string(policy.name),
                         .pool = pool,
                         .adapter_blocks = adapters,
                         .faults = number % 4 == 0,
                         .encodes = number % 2 == 0,
                         .keeps = adapters == mixed && number % 3 == 0});
          if (all.back().keeps) all.back().pool.kept_limit = 1;
        }
  return all;
}

}  // namespace valora::scheduler::testing
