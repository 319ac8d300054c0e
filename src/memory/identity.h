// What a sequence's KV cache depends on, and the blocks of a sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.h"
#include "memory/block_arena.h"

namespace valora::memory {

// An adapter that must be in the pool while a sequence runs.
struct AdapterNeed {
  Digest digest;       // of its content
  int32_t blocks = 0;  // pool blocks of its panels; 0: it is not in the pool, and always ready
};

// An image or video among a sequence's tokens. The digest of its pixels is part of the keys of the
// blocks that it overlaps.
struct MediaSpan {
  int token_begin = 0;
  int tokens = 0;
  Digest digest;
};

// What determines a sequence's KV content besides its token ids.
struct KvIdentity {
  Digest adapter;  // of the adapters with their scales; Digest{} for the base model
  std::vector<AdapterNeed> adapters;  // those that the KV content depends on; distinct
  std::vector<MediaSpan> media;       // ascending, not overlapping
};

// Computes the keys of all full blocks of `tokens`: key_i = H(key_{i-1}, token ids of block i, and
// per overlapping media span its digest, offset and length), with key_{-1} = H(adapter). `known`
// holds the keys of a prefix of the sequence, and is extended.
void extend_block_keys(const KvIdentity& identity, std::span<const int32_t> tokens,
                       std::vector<Digest>& known);

// The blocks of one sequence: block i holds tokens [16 i, 16 i + 16). Only blocks that are not full
// are written, and these are always private: blocks in the tree never change.
struct BlockTable {
  std::vector<BlockId> blocks;
  int committed = 0;  // leading blocks that Pool::commit() has processed
};

}  // namespace valora::memory
