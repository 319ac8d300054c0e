#include "kernels/cuda/attention/prompt_plan.h"

#include <algorithm>

#include "kernels/cuda/attention/flashinfer.h"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/split_keys.h"

namespace valora::kernels::cuda {
namespace {

int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

// A span as tiles of rows.
struct Prompt {
  DeviceSpan span;
  int64_t group, tile_rows;

  int64_t keys() const { return int64_t{span.context} + span.queries; }
  int64_t tiles() const { return parts(span.queries * group, tile_rows); }
  // The keys that some row of the tile attends to.
  int64_t keys_of(int64_t tile) const {
    return span.context + std::min<int64_t>(span.queries, parts((tile + 1) * tile_rows, group));
  }
  int64_t items(int64_t part_keys) const {
    int64_t items = 0;
    for (int64_t tile = 0; tile < tiles(); ++tile) items += parts(keys_of(tile), part_keys);
    return items;
  }
  // Rows of the workspace: FlashInfer places the parts of a query next to each other.
  int64_t part_rows(int64_t part_keys) const { return span.queries * parts(keys(), part_keys); }
};

std::vector<Prompt> prompts_of(const AttentionShape& shape, const AttentionPlan& plan, bool split) {
  const int32_t rows = split ? kSplitPromptRows : whole_prompt_rows(shape.dim);
  std::vector<Prompt> prompts;
  for (auto i = static_cast<size_t>(plan.sizes.decode_spans); i < plan.spans.size(); ++i)
    if (plan.spans[i].queries > 0)
      prompts.push_back({plan.spans[i], shape.heads / shape.kv_heads, rows});
  return prompts;
}

template <typename Of>
int64_t sum(const std::vector<Prompt>& prompts, const Of& of) {
  int64_t total = 0;
  for (const Prompt& prompt : prompts) total += of(prompt);
  return total;
}
int64_t items_of(const std::vector<Prompt>& prompts, int64_t part_keys) {
  return sum(prompts, [&](const Prompt& p) { return p.items(part_keys); });
}
int64_t rows_of(const std::vector<Prompt>& prompts, int64_t part_keys) {
  return sum(prompts, [&](const Prompt& p) { return p.part_rows(part_keys); });
}

int64_t longest_of(const std::vector<Prompt>& prompts) {
  int64_t longest = 0;
  for (const Prompt& prompt : prompts) longest = std::max(longest, prompt.keys());
  return longest;
}

// Thread blocks of a KV head that run at a time.
int64_t slots_of(const AttentionShape& shape) {
  return kBlocksPerProcessor * std::max(shape.multiprocessors, 1) / shape.kv_heads;
}

int64_t choose_part(const AttentionShape& shape, const std::vector<Prompt>& prompts) {
  return choose_split(
      shape, [&](int64_t keys) { return items_of(prompts, keys); }, longest_of(prompts));
}

bool fit(const std::vector<Prompt>& prompts, int64_t part_keys, const PromptSizes& within) {
  return items_of(prompts, part_keys) <= within.items &&
         (within.part_rows == 0 || rows_of(prompts, part_keys) <= within.part_rows);
}

// The keys of a part: as many as are chosen, or as few more as fit; at least the longest prompt's
// if none do.
int64_t part_within(const AttentionShape& shape, const std::vector<Prompt>& prompts,
                    const PromptSizes& within) {
  const int64_t longest = longest_of(prompts);
  int64_t part_keys = choose_part(shape, prompts);
  while (part_keys < longest && !fit(prompts, part_keys, within))
    part_keys = round_up_keys(part_keys + part_keys / 8, kSplitUnit);
  return part_keys;
}

// Rows of the workspace that suffice for any step, and for two waves of thread blocks.
int32_t most_part_rows(const AttentionShape& shape) {
  const int64_t tiles = 2 * std::max<int64_t>(slots_of(shape), 1);
  return static_cast<int32_t>(parts(tiles * kSplitPromptRows, shape.heads / shape.kv_heads));
}

// Lists the items of a prompt, those with the most keys first.
void add_items(const Prompt& prompt, int32_t entry, int64_t part_keys, int32_t& item,
               const PromptArrays<int32_t>& to) {
  for (int64_t tile = prompt.tiles() - 1; tile >= 0; --tile)
    for (int64_t part = 0; part < parts(prompt.keys_of(tile), part_keys); ++part, ++item) {
      to.requests[item] = entry;
      to.query_tiles[item] = static_cast<int32_t>(tile);
      to.key_tiles[item] = static_cast<int32_t>(part);
      reinterpret_cast<bool*>(to.used)[item] = true;
    }
}

// Where the parts of each query's sums are. Those beyond its position are not computed by all
// tiles, and not merged.
void add_rows(const Prompt& prompt, int64_t part_keys, int64_t first_row,
              const PromptArrays<int32_t>& to) {
  const int64_t of_query = parts(prompt.keys(), part_keys);
  for (int64_t i = 0; i < prompt.span.queries; ++i) {
    int32_t* const row = to.rows + 2 * (prompt.span.begin + i);
    row[0] = static_cast<int32_t>(first_row + i * of_query);
    row[1] = static_cast<int32_t>((prompt.span.context + i) / part_keys + 1);
  }
}

void add_entries(const std::vector<Prompt>& prompts, int64_t part_keys, bool split,
                 const PromptSizes& sizes, int32_t blocks, const PromptArrays<int32_t>& to) {
  int32_t item = 0, entry = 0;
  int64_t first_row = 0;
  for (const Prompt& prompt : prompts) {
    const DeviceSpan& span = prompt.span;
    add_items(prompt, entry, part_keys, item, to);
    to.queries[entry] = span.begin, to.queries[entry + 1] = span.begin + span.queries;
    to.blocks[entry] = span.first_block;
    to.blocks[entry + 1] =
        span.first_block + static_cast<int32_t>(parts(prompt.keys(), kBlockTokens));
    to.last_tokens[entry] = static_cast<int32_t>((prompt.keys() - 1) % kBlockTokens + 1);
    to.outputs[entry] = split ? static_cast<int32_t>(first_row) : span.begin;
    if (split) add_rows(prompt, part_keys, first_row, to);
    first_row += prompt.part_rows(part_keys);
    entry += 2;
  }
  // The last one bounds the reads of block tables by any item.
  for (; entry <= 2 * sizes.requests; ++entry) to.blocks[entry] = blocks;
}

}  // namespace

bool flashinfer_takes(const AttentionShape& shape) {
  return shape.flashinfer && attention_kernels(shape) == AttentionKernels::kTensorCores &&
         has_flashinfer(shape.dim, shape.dtype);
}

size_t prompt_array_length(const PromptSizes& sizes, int32_t tokens) {
  if (sizes.items == 0) return 0;
  const int32_t* const none = nullptr;
  const auto before = static_cast<size_t>(prompt_arrays(none, sizes).rows - none);
  return before + (sizes.part_rows > 0 ? 2 * static_cast<size_t>(tokens) : 0);
}

PromptSizes prompt_sizes(const AttentionShape& shape, const AttentionPlan& plan) {
  std::vector<Prompt> prompts = prompts_of(shape, plan, false);
  const int64_t longest = longest_of(prompts), whole = items_of(prompts, longest + 1);
  PromptSizes sizes{static_cast<int32_t>(whole), static_cast<int32_t>(prompts.size()), 0};
  if (whole == 0 || whole >= slots_of(shape)) return sizes;
  prompts = prompts_of(shape, plan, true);
  const int64_t part_keys = part_within(shape, prompts, {INT32_MAX, 0, most_part_rows(shape)});
  if (part_keys >= longest) return sizes;
  sizes.items = static_cast<int32_t>(items_of(prompts, part_keys));
  sizes.part_rows = static_cast<int32_t>(rows_of(prompts, part_keys));
  return sizes;
}

// How many keys the prompts have is not known, so keys are split wherever whole ones might leave
// multiprocessors without work. Each prompt has at most one incomplete tile.
PromptSizes bounded_prompt_sizes(const AttentionShape& shape, int32_t tokens, int32_t prompts) {
  if (prompts == 0) return {};
  const int64_t rows = int64_t{tokens} * (shape.heads / shape.kv_heads);
  const auto tiles = [&](int32_t of) { return rows / of + prompts; };
  const int64_t whole = tiles(whole_prompt_rows(shape.dim)), slots = slots_of(shape);
  if (whole >= slots) return {static_cast<int32_t>(whole), prompts, 0};
  const int64_t items = std::max(tiles(kSplitPromptRows), slots);
  return {static_cast<int32_t>(items), prompts, most_part_rows(shape)};
}

bool add_prompts(const AttentionShape& shape, const PromptSizes& sizes, AttentionPlan& plan) {
  const bool split = sizes.part_rows > 0;
  const std::vector<Prompt> prompts = prompts_of(shape, plan, split);
  if (sizes.items == 0) return prompts.empty();
  const int64_t part_keys =
      split ? part_within(shape, prompts, sizes) : std::max<int64_t>(longest_of(prompts), 1);
  if (prompts.size() > static_cast<size_t>(sizes.requests) || !fit(prompts, part_keys, sizes))
    return false;
  plan.prompts.assign(prompt_array_length(sizes, plan.sizes.tokens), 0);
  const PromptArrays<int32_t> to = prompt_arrays(plan.prompts.data(), sizes);
  *to.part_keys = static_cast<int32_t>(part_keys);
  add_entries(prompts, part_keys, split, sizes, static_cast<int32_t>(plan.block_tables.size()), to);
  plan.sizes.prompts = sizes;
  return true;
}

bool built_with_flashinfer() {
  for (const int32_t dim : {64, 128, 256})
    if (has_flashinfer(dim, Dtype::kBf16) || has_flashinfer(dim, Dtype::kFp16)) return true;
  return false;
}

size_t prompt_workspace_bytes(const AttentionSizes& sizes, int32_t heads, int32_t dim) {
  // Per part of a row: the weighted mean of values, and the logarithm of the sum of weights.
  return static_cast<size_t>(sizes.prompts.part_rows) * heads * (dim + 1) * sizeof(float);
}

}  // namespace valora::kernels::cuda
