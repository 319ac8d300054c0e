#include "kernels/cuda/testing/cases/attention_case.h"

namespace valora::kernels::cuda {
namespace {

// Prompts by FlashInfer's kernels, or by what takes their place in the emulation: alone and beside
// decodes, with whole keys and with parts of them, in captured steps, and what they do not take.
void test_steps(Group& group, Dtype dtype) {
  const auto run = [&](int heads, int kv_heads, int dim, const Lengths& lengths,
                       AttentionHow how = {}, const AttentionRule& rule = {}) {
    if (!flashinfer_takes({heads, kv_heads, dim, dtype, true, 132, 227 << 10, true})) return;
    StepSizes sizes{dtype, heads, kv_heads, dim, lengths};
    sizes.rule = rule, how.flashinfer = true;
    attention_case(group, sizes, how);
  };
  const Lengths split = {{700, 20}, {37, 1}, {0, 17}}, many = {{0, 40}, {300, 1}, {77, 3}, {5, 21}};
  for (const int dim : {64, 128, 256}) {
    run(2, 2, dim, {{700, 20}});
    run(2, 1, dim, split);
    run(4, 2, dim, many, {0, false, true});
    run(2, 1, dim, split, {0, true, true});
  }
  run(1, 1, 64, {{321, 200}});  // a query, and a tile's last key, that begin a part of 128 keys
  for (const int dim : {64, 128, 256})  // FA3's on its GPUs, since there are enough tiles of heads
    run(14, 2, dim,
        {{0, 17},
         {3, 18},
         {9, 20},
         {1, 19},
         {5, 16},
         {30, 1},
         {0, 21},
         {0, 16},
         {0, 17},
         {2, 16},
         {7, 16}});
  run(7, 1, 64, {{0, 53}, {110, 12}}, {}, {0, 0.3});
  run(2, 1, 64, split, {0, true}, {33});
  for (const bool bounded : {false, true}) {  // with much work
    for (const int heads : {4, 14, 28, 32}) {
      run(heads, heads % 4 == 0 ? 4 : 2, 128, kMixed, {0, bounded, bounded});
      run(heads, 2, 64, kPrefill, {0, false, bounded});
    }
    run(8, 2, 256, kMixed, {0, false, bounded});
    run(28, 4, 128, {{4000, 30}, {1234, 1}, {0, 300}}, {0, false, bounded});
    run(8, 8, 128, {{0, 900}, {100, 70}}, {0, bounded, false});
    run(32, 4, 128, kPrefill, {0, bounded, false});
    run(28, 4, 256, {{0, 400}, {37, 1}, {129, 200}}, {0, bounded, false});
  }
  StepSizes bytes{dtype, 4, 2, 64, kShort};
  bytes.format = KvFormat::kInt8;
  attention_case(group, bytes, {0, false, false, true});
}

}  // namespace

bool test_prompts(Dtype dtype, const Selection& selection) {
  Group group(std::string("prompts ") + name_of(dtype), selection);
  test_steps(group, dtype);
  return group.finish();
}

}  // namespace valora::kernels::cuda
