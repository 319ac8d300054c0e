// The tensor side of an engine: the model, its adapters' weights and the pool's memory. This room
// uses it only through these interfaces, so it does not need torch.
#pragma once

#include "memory/mover.h"
#include "memory/pool.h"
#include "serving/adapters/adapter_backend.h"
#include "serving/model_runner.h"

namespace valora::serving {

// The memory that the pool manages.
class PoolBacking : public memory::PoolListener {
 public:
  // Performs one copy. Called on the mover's thread.
  virtual Status copy(const memory::Move& move) = 0;
};

class ModelSide {
 public:
  virtual ~ModelSide() = default;
  virtual ModelRunner& runner() = 0;
  virtual AdapterBackend& adapters() = 0;
  virtual PoolBacking& memory() = 0;
};

}  // namespace valora::serving
