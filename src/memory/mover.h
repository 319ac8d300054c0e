// Copies between the tiers of memory. The pool decides what moves; a mover does it: with threads
// (memory/thread_mover.h), or in simulated time (sim/simulated_mover.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "memory/block_arena.h"

namespace valora::memory {

enum class MoveKind : uint8_t {
  kLoadAdapter,  // from its file into `blocks`
  kReadKv,       // from swap block `swapped` into blocks[0]
  kWriteKv,      // from blocks[0] to swap block `swapped`
};

// In the order in which moves start.
enum class Urgency : uint8_t {
  kAdapterOfRequest,
  kKvOfRequest,
  kRoom,        // a request waits for the room
  kBackground,  // a wish of the swapper
};

struct Move {
  uint64_t id = 0;  // never 0
  MoveKind kind = MoveKind::kLoadAdapter;
  Urgency urgency = Urgency::kBackground;
  Digest key;  // of the node
  std::vector<BlockId> blocks;
  BlockId swapped = kNoBlock;
  int64_t bytes = 0;
};

struct MoveResult {
  uint64_t id = 0;
  Status status;
  double seconds = 0;  // of the copy itself, without the time in the queue
};

// Used by one thread.
class Mover {
 public:
  virtual ~Mover() = default;
  // Never waits. The blocks belong to the move until its result, or until cancel() returns true.
  // Throws std::bad_alloc before anything has begun; what else may throw is poll(), which then has
  // the same results the next time.
  virtual void start(Move move) = 0;
  // The results since the last call, in the order in which the moves ended.
  virtual std::vector<MoveResult> poll() = 0;
  // Makes a move that has not begun more urgent. No effect on others.
  virtual void raise_priority(uint64_t id, Urgency urgency) = 0;
  // True: the move had not begun, and has no result. False: it goes on.
  virtual bool cancel(uint64_t id) = 0;
};

}  // namespace valora::memory
