// What requests claim in the pool (memory/pool.h), apart from the blocks of their tables.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "memory/identity.h"

namespace valora::memory {

struct AdapterNode;

enum class Readiness : uint8_t {
  kReady,
  kLoadingAdapter,  // an adapter is being loaded
  kLoadingKv,       // KV of its prefix is being read from the swap space
  kFull,            // there is no room at present
  kFailed,          // an adapter failed to load: see Claim::error
};

// Resources that a request holds in the pool besides its blocks: its pinned adapters and, until it
// starts, KV read from the swap space for it.
struct Claim {
  std::vector<AdapterNode*> pinned;
  bool counted = false;  // its adapters' visits were counted
  bool visited = false;  // its prefix's visits were counted: it has started before
  bool ready = false;
  BlockTable prefix;  // its prefix's KV if there is a swap space; held until it starts
  std::optional<Error> error;

  bool holds() const { return !pinned.empty() || !prefix.blocks.empty(); }
};

}  // namespace valora::memory
