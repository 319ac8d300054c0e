#include <string>
#include <vector>

#include "kernels/cuda/testing/cases/attention_case.h"

namespace valora::kernels::cuda {
namespace {

// Steps with windows, joint ranges and scales.
void test_rules(Group& group, Dtype dtype) {
  const Lengths few = {{110, 12}, {90, 1}, {3, 2}}, tiny = {{50, 3}, {15, 4}, {60, 1}};
  const std::vector<PositionRange> joint = {{1, 4},     {10, 12},   {16, 18},    {40, 53},
                                            {115, 122}, {131, 139}, {1001, 1032}};
  const auto run = [&](int heads, int kv_heads, int dim, const Lengths& lengths,
                       const AttentionRule& rule, bool joined = false, AttentionHow how = {},
                       KvFormat format = KvFormat::kPlain) {
    StepSizes sizes{dtype, heads, kv_heads, dim, lengths};
    sizes.format = format, sizes.rule = rule;
    if (joined) sizes.joint = joint;
    attention_case(group, sizes, how);
  };
  for (const bool joined : {false, true}) {
    for (const int window : {1, 16, 17, 40}) {
      run(2, 1, 10, tiny, {window}, joined);
      run(2, 1, 64, {{0, 53}, {37, 1}, {16, 2}, {130, 9}}, {window}, joined,
          {0, false, window == 17});
    }
    for (const int window : {0, 20})  // tiles of 8 queries, of which some end within joint ranges
      run(16, 1, 8, {{0, 53}, {110, 12}}, {window}, joined);
    run(2, 1, joined ? 128 : 256, few, {50, 0.3}, joined);
    run(2, 1, 64, few, {}, joined, {0, true});
    run(2, 1, 64, few, {50}, joined, {0, false, joined}, joined ? KvFormat::kInt8 : KvFormat::kFp8);
    // Windows that end within parts of the keys, and parts before the windows of some queries.
    run(1, 1, 64, {{200, 16}, {0, 9}}, {joined ? 5 : 70}, joined, {64});
    for (const int window : {33, 64, 500}) {  // with much work
      for (const int dim : {64, 128, 256}) run(28, 4, dim, kMixed, {window, 0.1}, joined);
      run(14, 2, 64, kMixed, {window}, joined, {0, false, true}, KvFormat::kInt8);
      run(7, 1, 128, kPrefill, {window}, joined, {0, true});
    }
  }
  run(14, 2, 64, kDecode, {700}, false, {0, true, true});
  run(8, 2, 256, kDecode, {1024, 0.0625}, false, {0, false, true});
  run(1, 1, 64, {{2200, 1}, {5, 1}}, {2150}, false, {4096});
  run(2, 1, 10, tiny, {int64_t{1} << 40});
}

void test_dtype(Group& group, Dtype dtype) {
  const auto run = [&](int heads, int kv_heads, int dim, const Lengths& lengths,
                       AttentionHow how = {}, bool shifted = false) {
    attention_case(group, {dtype, heads, kv_heads, dim, lengths, shifted}, how);
  };
  run(14, 2, 64, kMixed);
  run(28, 4, 128, kMixed);
  run(4, 4, 128, kDecode);
  run(14, 2, 64, kDecode);
  run(28, 4, 128, kDecode);
  run(14, 2, 64, kPrefill);
  run(7, 1, 128, kPrefill);
  for (const int dim : {8, 16, 32, 64, 80, 96, 104, 128, 136, 200, 256}) run(6, 2, dim, kMixed);
  for (const int dim : {2, 10, 100, 250}) run(4, 2, dim, {{0, 5}, {37, 1}, {15, 3}, {130, 9}});
  for (const int dim : {96, 128, 256}) run(4, 2, dim, kShort);
  for (const int group_size : {1, 2, 7, 16})
    for (const int dim : {64, 80, 128, 256})
      for (const Lengths& lengths : {Lengths{{37, 1}, {100, 1}, {15, 1}, {500, 1}},
                                     Lengths{{37, 1}, {0, 40}, {64, 19}, {15, 2}, {300, 1}}})
        run(group_size * 2, 2, dim, lengths, {0, false, true});
  run(14, 2, 64, kMixed, {0, false, true});
  run(28, 4, 128, kMixed, {0, true, true});
  run(14, 2, 64, kPrefill, {0, false, true});
  for (const int group_size : {1, 2, 3, 4, 5, 8, 12, 16}) {
    run(group_size * 2, 2, 64, {{0, 40}, {300, 1}, {77, 3}, {5, 16}, {129, 7}});
    run(group_size, 1, 128, {{700, 1}, {77, 2}, {12, 20}});
  }
  run(20, 1, 64, {{0, 40}, {300, 1}, {77, 3}});  // a group wider than a decode tile
  for (const int keys : {64, 128, 192, 1024}) run(14, 2, 64, kDecode, {keys});
  for (const int keys : {64, 256}) run(28, 4, 128, kMixed, {keys});
  run(8, 2, 256, kDecode, {512});
  run(1, 1, 64, {{2200, 1}, {5, 1}}, {4096});  // one warp has more KV blocks than lanes
  run(14, 2, 64, kMixed, {64, true});
  run(28, 4, 128, kMixed, {0, true});
  run(4, 2, 64, kMixed, {}, true);
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kFp8}) {
    for (const int dim : {8, 64, 80, 96, 128, 256})
      attention_case(group, {dtype, 4, 2, dim, kShort, false, 24, format});
    attention_case(group, {dtype, 14, 2, 64, kMixed, false, 24, format}, {64, true});
    attention_case(group, {dtype, 4, 2, 10, kShort, true, 24, format});
  }
  run(4, 2, 64, {{0, 1}});
  run(4, 2, 64, {});
}

// A few spans with short prompts and contexts.
void random_attention(Group& group, Dtype dtype, Random& random) {
  const auto between = [&](int low, int high) {
    return static_cast<int>(random.between(low, high));
  };
  StepSizes sizes;
  sizes.dtype = dtype;
  sizes.kv_heads = between(1, 2);
  sizes.heads = sizes.kv_heads * between(1, random.below(3) > 0 ? 4 : 16);
  sizes.dim = random.below(8) > 0 ? 8 * between(1, 16) : 2 * between(1, 128);
  sizes.lengths.resize(between(1, 4));
  for (auto& [context, queries] : sizes.lengths)
    context = between(0, 90), queries = random.below(2) > 0 ? 1 : between(1, 24);
  sizes.shifted = random.below(12) == 0;
  if (random.below(3) == 0) sizes.format = random.below(2) > 0 ? KvFormat::kInt8 : KvFormat::kFp8;
  if (random.below(2) == 0) sizes.rule.window = between(1, random.below(2) > 0 ? 30 : 120);
  if (random.below(4) == 0) sizes.rule.scale = 0.3;
  for (int at = random.below(3) > 0 ? 200 : between(0, 12); at < 110; at += between(0, 20)) {
    const int end = at + between(1, 30);
    sizes.joint.push_back({at, end});
    at = end;
  }
  attention_case(group, sizes,
                 {random.below(4) > 0 ? 0 : 64 * between(1, 3), random.below(4) == 0,
                  random.below(2) == 0, random.below(3) == 0});
}

}  // namespace

bool test_attention(Dtype dtype, const Selection& selection) {
  Group group(std::string("attention ") + name_of(dtype), selection);
  test_dtype(group, dtype);
  test_rules(group, dtype);
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) random_attention(group, dtype, random);
  return group.finish();
}

}  // namespace valora::kernels::cuda
