// Copies between memory tiers. The pool decides what moves; a mover carries it out, with threads
// (memory/thread_mover.h) or in simulated time (memory/simulated_mover.h).
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

// Most urgent first.
enum class Urgency : uint8_t {
  kAdapterOfRequest,
  kKvOfRequest,
  kRoom,        // a request waits for the freed room
  kBackground,  // planned by the swapper
};

struct Move {
  uint64_t id = 0;  // never 0
  MoveKind kind = MoveKind::kLoadAdapter;
  Urgency urgency = Urgency::kBackground;
  Digest key;  // the node's
  std::vector<BlockId> blocks;
  BlockId swapped = kNoBlock;
  int64_t bytes = 0;
};

struct MoveResult {
  uint64_t id = 0;
  Status status;
  double seconds = 0;  // of the copy itself, excluding the time in the queue
};

// Must be used from one thread.
class Mover {
 public:
  virtual ~Mover() = default;
  // Never blocks. The blocks belong to the move until poll() returns its result or cancel() returns
  // true. Throws std::bad_alloc only before the move is queued. poll() may also throw; its next
  // call then returns the same results.
  virtual void start(Move move) = 0;
  // The results since the last call, in the order in which moves ended.
  virtual std::vector<MoveResult> poll() = 0;
  // Raises the priority of a move that has not started; otherwise has no effect.
  virtual void raise_priority(uint64_t id, Urgency urgency) = 0;
  // True: the move had not started and will have no result. False: it continues.
  virtual bool cancel(uint64_t id) = 0;
};

}  // namespace valora::memory
