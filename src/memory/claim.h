// Claims of requests on the pool (memory/pool.h), apart from their blocks.
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
  kLoadingAdapter,  // an adapter is on its way
  kLoadingKv,       // the KV of its prefix is on its way
  kFull,            // there is no room for it now
  kFailed,          // an adapter could not be loaded: Claim::error
};

// Resources that a waiting or running request holds in the pool besides its blocks: its pinned
// adapters and, until it starts, KV that was read from the swap space for it.
struct Claim {
  std::vector<AdapterNode*> pinned;
  bool counted = false;  // its visit was counted
  bool visited = false;  // and that of its prefix: it has started before
  bool ready = false;
  BlockTable prefix;  // the KV of its prefix if there is a swap space, held until it starts
  std::optional<Error> error;

  bool holds() const { return !pinned.empty() || !prefix.blocks.empty(); }
};

}  // namespace valora::memory
