#include "kernels/cuda/attention/hopper_plan.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "kernels/cuda/attention/flashinfer.h"

namespace valora::kernels::cuda {
namespace {

// What an item costs besides its keys, in keys.
constexpr int64_t kItemOverhead = 256;

struct Item {
  int32_t prompt, tile, head;
  int64_t keys;  // that its last query attends to
};

// The items of all prompts, those with the most keys first.
std::vector<Item> hopper_items(const AttentionShape& shape, const AttentionPlan& plan) {
  const int32_t rows = hopper_queries(shape.dim);
  std::vector<Item> items;
  for (auto i = static_cast<size_t>(plan.sizes.decode_spans); i < plan.spans.size(); ++i) {
    const DeviceSpan& span = plan.spans[i];
    for (int32_t tile = 0; tile * rows < span.queries; ++tile)
      for (int32_t head = 0; head < shape.heads; ++head)
        items.push_back({static_cast<int32_t>(i), tile, head,
                         int64_t{span.context} + std::min(span.queries, (tile + 1) * rows)});
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.keys > b.keys; });
  return items;
}

// Gives each item, from the largest on, to the list with the least work.
std::vector<std::vector<Item>> lists_of(const std::vector<Item>& items, int32_t count) {
  using Load = std::pair<int64_t, int32_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int32_t list = 0; list < count; ++list) loads.emplace(0, list);
  std::vector<std::vector<Item>> lists(count);
  for (const Item& item : items) {
    const auto [load, list] = loads.top();
    loads.pop();
    lists[list].push_back(item);
    loads.emplace(load + item.keys + kItemOverhead, list);
  }
  return lists;
}

}  // namespace

size_t hopper_array_length(const PromptSizes& sizes) {
  const int32_t* const none = nullptr;
  return static_cast<size_t>(hopper_arrays(none, sizes).lists - none) + sizes.lists + 1;
}

std::optional<PromptSizes> hopper_sizes(const AttentionShape& shape, const AttentionPlan& plan) {
  if (!shape.hopper || !has_hopper_flashinfer(shape.dim, shape.dtype)) return std::nullopt;
  const auto items = static_cast<int32_t>(hopper_items(shape, plan).size());
  if (items < shape.multiprocessors) return std::nullopt;
  PromptSizes sizes;
  sizes.items = items, sizes.lists = shape.multiprocessors;
  sizes.requests = static_cast<int32_t>(plan.spans.size()) - plan.sizes.decode_spans;
  return sizes;
}

void add_hopper_prompts(const AttentionShape& shape, const PromptSizes& sizes,
                        AttentionPlan& plan) {
  plan.prompts.assign(hopper_array_length(sizes), 0);
  const HopperArrays<int32_t> to = hopper_arrays(plan.prompts.data(), sizes);
  int32_t at = 0, list = 0;
  for (const std::vector<Item>& items : lists_of(hopper_items(shape, plan), sizes.lists)) {
    to.lists[list++] = at;
    for (const Item& item : items) {
      const DeviceSpan& span = plan.spans[item.prompt];
      to.tiles[at] = item.tile, to.heads[at] = item.head;
      to.prompts[at] = item.prompt - plan.sizes.decode_spans;
      to.begins[at] = span.begin, to.blocks[at] = span.first_block;
      to.queries[at] = span.queries, to.keys[at] = span.context + span.queries;
      ++at;
    }
  }
  to.lists[list] = at;
  plan.sizes.prompts = sizes;
}

}  // namespace valora::kernels::cuda
