// The plan of prompts for FlashInfer's FA2 kernels: which thread block takes which queries and
// keys, and where results go. FlashInfer's own planner is not used: it asks for pinned memory and a
// copy of its own, where this plan is copied with the other tables of a step.
#pragma once

#include "kernels/cuda/attention.h"

namespace valora::kernels::cuda {

// Rows of a tile; rows are (query, head of the group) pairs, heads vary fastest. With whole keys a
// thread block writes results; of split keys it writes sums in fp32, which prompt_parts.cu merges.
inline constexpr int32_t kSplitPromptRows = 64;
constexpr int32_t whole_prompt_rows(int32_t dim) { return dim <= 128 ? 128 : 64; }

// Where the parts of a token's sums are: rows first … first + parts - 1 of the workspace. parts 0:
// the token is in no prompt.
struct PromptRow {
  int32_t first = 0, parts = 0;
};

// The plan's arrays. Request r of `requests` is entry 2 r, and what lies between it and the next
// one is entry 2 r + 1, since FlashInfer takes the begin of an entry for the end of the one before
// it; no item has such an entry.
template <typename Int>
struct PromptArrays {
  Int *requests, *query_tiles, *key_tiles;  // per item: its entry, tile of rows and part of keys
  Int* queries;                             // per entry and one more: its first query row
  Int* blocks;       // per entry and one more: its first index in the step's block tables
  Int* last_tokens;  // per entry: the tokens in its last block
  Int* outputs;      // per entry: its first row of results or of the workspace
  Int* part_keys;    // one value: the keys of a part
  Int* used;         // per item, in bytes: 0 if it is surplus
  Int* rows;         // per token of the step, if keys are split: a PromptRow
};

// The length of the array that holds them all.
size_t prompt_array_length(const PromptSizes& sizes, int32_t tokens);
// The same arrays in memory that begins at `base`.
template <typename Int>
PromptArrays<Int> prompt_arrays(Int* base, const PromptSizes& sizes) {
  const auto next = [&](int32_t length) {
    Int* at = base;
    base += (length + 3) / 4 * 4;  // 16-byte aligned
    return at;
  };
  const int32_t items = sizes.items, entries = 2 * sizes.requests + 1;
  PromptArrays<Int> arrays{};
  for (auto* of_items : {&arrays.requests, &arrays.query_tiles, &arrays.key_tiles})
    *of_items = next(items);
  for (auto* of_entries : {&arrays.queries, &arrays.blocks, &arrays.last_tokens, &arrays.outputs})
    *of_entries = next(entries);
  arrays.part_keys = next(1);
  arrays.used = next((items + 3) / 4);
  arrays.rows = base;
  return arrays;
}

// The sizes of a step whose spans from plan.sizes.decode_spans on are prompts.
PromptSizes prompt_sizes(const AttentionShape& shape, const AttentionPlan& plan);
// The sizes of all steps with at most this many tokens and prompts. All that split keys have the
// same workspace.
PromptSizes bounded_prompt_sizes(const AttentionShape& shape, int32_t tokens, int32_t prompts);
// Fills plan.prompts, with these sizes. False if they do not suffice.
bool add_prompts(const AttentionShape& shape, const PromptSizes& sizes, AttentionPlan& plan);

}  // namespace valora::kernels::cuda
