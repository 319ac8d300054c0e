// The plan of prompts for FlashInfer's FA3 kernels (compute capability 9.0). A thread block stays
// on its multiprocessor and takes the items of a list, one after the other; an item is a tile of
// queries of one query head. Keys are not split, so these kernels take steps with much work, which
// are not captured.
#pragma once

#include <optional>

#include "kernels/cuda/attention.h"

namespace valora::kernels::cuda {

// Queries of an item.
constexpr int32_t hopper_queries(int32_t dim) { return dim == 64 ? 192 : 128; }

template <typename Int>
struct HopperArrays {
  // Per item: its tile of queries, query head and prompt.
  Int *tiles, *heads, *prompts;
  // Per item, of its prompt: its first row, its first index in the step's block tables, its numbers
  // of queries and keys.
  Int *begins, *blocks, *queries, *keys;
  Int* lists;  // per list and one more: its first item
};

// The length of the array that holds them all.
size_t hopper_array_length(const PromptSizes& sizes);
// The same arrays in memory that begins at `base`.
template <typename Int>
HopperArrays<Int> hopper_arrays(Int* base, const PromptSizes& sizes) {
  HopperArrays<Int> arrays{};
  for (auto* of_items : {&arrays.tiles, &arrays.heads, &arrays.prompts, &arrays.begins,
                         &arrays.blocks, &arrays.queries, &arrays.keys}) {
    *of_items = base;
    base += (sizes.items + 3) / 4 * 4;  // 16-byte aligned
  }
  arrays.lists = base;
  return arrays;
}

// The sizes of a step whose spans from plan.sizes.decode_spans on are prompts; nullopt if the
// kernels are not for this GPU or these heads, or have too little work.
std::optional<PromptSizes> hopper_sizes(const AttentionShape& shape, const AttentionPlan& plan);
// Fills plan.prompts, with these sizes.
void add_hopper_prompts(const AttentionShape& shape, const PromptSizes& sizes, AttentionPlan& plan);

}  // namespace valora::kernels::cuda
