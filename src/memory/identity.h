// What determines the content of a sequence's KV cache, and the blocks that hold it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.h"
#include "memory/block_arena.h"

namespace valora::memory {

// An adapter that must be in the pool while a sequence runs.
struct AdapterNeed {
  Digest digest;       // of the adapter's content
  int32_t blocks = 0;  // pool blocks of its panels; 0: it needs no pool blocks and is always ready
};

// An image or video among a sequence's tokens. The digest of its pixels enters the keys of the
// blocks that it overlaps.
struct MediaSpan {
  int token_begin = 0;
  int tokens = 0;
  Digest digest;
};

// For models whose rotary frequencies depend on the sequence length (models/decoder/rotary.h): the
// length that applies to each token. Tokens of the prompt use the prompt's length, because the
// reference computes them in one pass; a generated token uses the length including itself. This
// depends on the request only, not on how steps divide it, so chunking, preemption and prefix reuse
// do not change the frequencies.
struct RopeLengths {
  int64_t limit = 0;  // all lengths up to here have the same frequencies; 0: no limit
  bool each = false;  // beyond it, each length has its own frequencies; else all share one set
  int prompt_tokens = 0;
  int64_t prompt = 0;  // the largest position of the prompt + 1
  int64_t delta = 0;   // position minus index of a generated token
  // All tokens use the prompt's frequencies, which change at doublings of the limit (Qwen's dynamic
  // NTK).
  bool of_prompt = false;

  int64_t of(int token) const {
    return of_prompt || token < prompt_tokens ? prompt : token + delta + 1;
  }
  // Equal for tokens with equal frequencies; 0 up to the limit. Never decreases along a sequence.
  int64_t variant(int token) const {
    if (limit == 0 || of(token) <= limit) return 0;
    if (of_prompt) return std::bit_width(static_cast<uint64_t>((prompt - 1) / limit));
    return each ? of(token) : 1;
  }
};

// Everything besides token ids that determines a sequence's KV content.
struct KvIdentity {
  Digest adapter;  // digest of the adapters and their scales; Digest{} for the base model
  std::vector<AdapterNeed> adapters;  // distinct; the KV content depends on all
  std::vector<MediaSpan> media;       // ascending, not overlapping
  RopeLengths rope = {};
  // Digest of the adapters that act only from token `late_from` on (activated LoRA). KV before that
  // token has the identity `adapter` and is shared with its sequences. Digest{}: none.
  Digest late = {};
  int late_from = 0;

  // The adapters that the KV of all tokens depends on.
  std::span<const AdapterNeed> of_all() const {
    return late == Digest{} ? std::span<const AdapterNeed>(adapters)
                            : std::span<const AdapterNeed>();
  }
};

// Computes the keys of all full blocks of `tokens`: key_i = H(key_{i-1}; the token ids of block i;
// digest, offset and length of each overlapping media span; the variants of the tokens' rotary
// frequencies unless all are 0; and, from the block with token late_from on, `late` and that
// token's offset in the block), with key_{-1} = H(adapter). `known` holds the keys of a prefix of
// the sequence and is extended.
void extend_block_keys(const KvIdentity& identity, std::span<const int32_t> tokens,
                       std::vector<Digest>& known);

// The blocks of one sequence: block i holds tokens [16 i, 16 i + 16). Only blocks that are not full
// are written to, and they are always private: blocks in the tree never change.
struct BlockTable {
  std::vector<BlockId> blocks;
  int committed = 0;  // leading blocks already processed by Pool::commit()
  // For models whose sequences have a state besides their KV (PoolConfig::state_blocks):
  std::vector<BlockId> state;  // private: the state after the computed tokens, once written
  // Until a step has written `state`: the shared checkpoint that the first step reads, if any.
  std::vector<BlockId> start;
  // Private: where the next step writes checkpoints.
  static constexpr int kMostKept = 2;
  std::array<std::vector<BlockId>, kMostKept> kept;
  int branch = 0;  // blocks of stored prefix found at the start, with or without a checkpoint
};

}  // namespace valora::memory
