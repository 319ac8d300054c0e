// What a sequence's KV cache depends on, and the blocks of a sequence.
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

// The length that the rotary frequencies of each token follow, where they change with it
// (models/rotary.h): that of the prompt for its tokens, which the reference computes in one pass;
// for a generated token the length with it. It is a function of the request, not of the steps that
// compute it, so chunks, preemptions and prefixes leave the frequencies as they are.
struct RopeLengths {
  int64_t limit = 0;  // up to this length all frequencies are the same; 0: at any length
  bool each = false;  // beyond it every length has its own; else all share others
  int prompt_tokens = 0;
  int64_t prompt = 0;  // the largest position of the prompt + 1
  int64_t delta = 0;   // the generated token with index i is at position i + delta
  // All tokens have the frequencies of the prompt, whose length counts by doublings of the limit
  // (Qwen's dynamic NTK).
  bool of_prompt = false;

  int64_t of(int token) const {
    return of_prompt || token < prompt_tokens ? prompt : token + delta + 1;
  }
  // Equal for tokens with equal frequencies; 0 up to the limit. Later tokens have no smaller one.
  int64_t variant(int token) const {
    if (limit == 0 || of(token) <= limit) return 0;
    if (of_prompt) return std::bit_width(static_cast<uint64_t>((prompt - 1) / limit));
    return each ? of(token) : 1;
  }
};

// All that determines a sequence's KV content besides its token ids.
struct KvIdentity {
  Digest adapter;  // of the adapters with their scales; Digest{} for the base model
  std::vector<AdapterNeed> adapters;  // on which the KV content depends; distinct
  std::vector<MediaSpan> media;       // ascending, not overlapping
  RopeLengths rope = {};
  // Of adapters that act from a token on (activated LoRA): what is before it is that of `adapter`,
  // and shared with its sequences. Digest{}: none.
  Digest late = {};
  int late_from = 0;

  // The adapters that all of the KV content depends on.
  std::span<const AdapterNeed> of_all() const {
    return late == Digest{} ? std::span<const AdapterNeed>(adapters)
                            : std::span<const AdapterNeed>();
  }
};

// Computes the keys of all full blocks of `tokens`: key_i = H(key_{i-1}, token ids of block i, per
// overlapping media span its digest, offset and length, the variants of the tokens' rotary
// frequencies if one is not 0, and, from the block on that has token late_from, `late` and that
// token's place in the block), with key_{-1} = H(adapter). `known` holds the keys of a prefix of
// the sequence, and is extended.
void extend_block_keys(const KvIdentity& identity, std::span<const int32_t> tokens,
                       std::vector<Digest>& known);

// The blocks of one sequence: block i holds tokens [16 i, 16 i + 16). Only blocks that are not full
// are written, and these are always private: blocks in the tree never change.
struct BlockTable {
  std::vector<BlockId> blocks;
  int committed = 0;  // leading blocks that Pool::commit() has processed
  // Of a model whose sequences have a state besides their KV (PoolConfig::state_blocks):
  std::vector<BlockId> state;  // its own: the state after the computed tokens, once a step wrote it
  std::vector<BlockId>
      start;  // until then, the shared checkpoint that its first step reads, if any
  // Its own: where the next step writes checkpoints.
  static constexpr int kMostKept = 2;
  std::array<std::vector<BlockId>, kMostKept> kept;
  int branch = 0;  // the stored prefix went on so far when it started, in blocks
};

}  // namespace valora::memory
