// Brings adapters from their folders to the model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "adapters/adapter_spec.h"
#include "api/cards.h"
#include "api/load_adapter.h"
#include "base/digest.h"
#include "base/result.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora::serving {

// Implemented by the tensor side.
class AdapterBackend {
 public:
  virtual ~AdapterBackend() = default;

  struct Read {
    std::shared_ptr<const adapters::AdapterSpec> spec;
    std::shared_ptr<LoadedAdapter> adapter;  // without id or name
    bool lazy = false;                       // only the headers were read
  };
  // Reads the folder and creates the adapter that requests hold. Its weights are loaded when the
  // pool asks for them (PoolBacking), or now if adapters are not kept in the pool. Called by
  // several threads. Errors name the folder. Does not throw.
  virtual Result<Read> read(const LoadAdapter& request) = 0;
  struct Residency {
    WeightsPlace place = WeightsPlace::kPool;
    std::optional<AdapterLoad> last_load;
  };
  // Where this content's weights are. Thread-safe.
  virtual Residency residency(const Digest& content) const = 0;
  // Task heads and their labels, which are outside the pool, in bytes. Thread-safe.
  struct HeadMemory {
    int64_t bytes = 0, limit = 0;
  };
  virtual HeadMemory head_memory() const { return {}; }
};

}  // namespace valora::serving
