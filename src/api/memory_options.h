// Options of the memory pool shared by adapters and KV cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace valora {

// The order in which the pool evicts blocks. kLearned: least time saved first, by measured access
// rates. kBenefit: lowest value first (FastLibra's formula). kLru: least recently used first.
enum class MemoryPolicy : uint8_t { kLearned, kBenefit, kLru };

Result<MemoryPolicy> parse_memory_policy(const std::string& name);  // learned, benefit, lru
std::string name_of(MemoryPolicy policy);

struct MemoryOptions {
  std::optional<int64_t> pool_bytes;  // absent: derived from the free memory
  // bytes of the second tier for KV (a file; with a GPU, pinned host memory); 0: none
  int64_t swap_bytes = 0;
  std::string swap_dir = "/var/tmp";
  double swap_bandwidth = 0;  // limit in bytes/s, for experiments; 0: none
  // with a GPU: host memory for packed adapters that are not in the pool; absent: 4 GiB, but at
  // most a quarter of the free memory
  std::optional<int64_t> adapter_cache_bytes;
  MemoryPolicy policy = MemoryPolicy::kLearned;
  // For comparisons, if false: an adapter may be evicted before its KV (kLearned always allows
  // this); kBenefit does not reward the number of adapters; nothing stays cached after its last
  // request. adapter_bytes: fixed share of the pool for adapters.
  bool dependencies = true;
  bool adapter_reward = true;
  bool history = true;
  std::optional<int64_t> adapter_bytes;
  // The swapper: pool usage above which blocks are swapped out, and below which they are swapped
  // in; seconds between decisions, length of the window in which visits are counted, and decay time
  // of recency.
  double high = 0.95;
  double low = 0.70;
  double period = 0.1;
  double window = 300;
  double recency = 1;
};

}  // namespace valora
