// The options of the pool of memory that adapters and KV cache share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace valora {

// The order in which the pool evicts blocks. kLearned: the least time saved first, by measured
// rates of use. kBenefit: the lowest value first (FastLibra's formula). kLru: the least recently
// used first.
enum class MemoryPolicy : uint8_t { kLearned, kBenefit, kLru };

Result<MemoryPolicy> parse_memory_policy(const std::string& name);  // learned, benefit, lru
std::string name_of(MemoryPolicy policy);

struct MemoryOptions {
  std::optional<int64_t> pool_bytes;  // absent: from the free memory
  // of the second tier of KV: a file, with a GPU pinned host memory; 0: none
  int64_t swap_bytes = 0;
  std::string swap_dir = "/var/tmp";
  double swap_bandwidth = 0;  // bytes/s at most, for experiments; 0: no limit
  // with a GPU: host memory for packed adapters that are not in the pool; absent: 4 GiB, but at
  // most a quarter of the free memory
  std::optional<int64_t> adapter_cache_bytes;
  MemoryPolicy policy = MemoryPolicy::kLearned;
  // For comparisons: an adapter may leave before its KV, as it may with kLearned in any case;
  // kBenefit gives adapters no reward for their number; nothing stays after its last request;
  // adapters get a fixed share of the pool.
  bool dependencies = true;
  bool adapter_reward = true;
  bool history = true;
  std::optional<int64_t> adapter_bytes;
  // The swapper: shares of the pool above which blocks leave, and below which they come in; seconds
  // between its decisions, in which visits are counted, and in which recency fades.
  double high = 0.95;
  double low = 0.70;
  double period = 0.1;
  double window = 300;
  double recency = 1;
};

}  // namespace valora
