// A case of paged attention: a step on the device, its plan, and the comparison with the reference.
#pragma once

#include "kernels/cuda/testing/cases/attention_step.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/report.h"

namespace valora::kernels::cuda {

struct AttentionHow {
  int split_keys = 0;       // 0: chosen by the plan
  bool graph = false;       // capture the launches and replay them twice
  bool bounded = false;     // use the tables of a captured step
  bool flashinfer = false;  // prompts by FlashInfer's kernels, where they are compiled
};

void attention_case(Group& group, const StepSizes& sizes, const AttentionHow& how = {});

// (context, queries) of each span in a batch.
using Lengths = std::vector<std::pair<int, int>>;

inline const Lengths kMixed = {{0, 5},  {37, 1}, {100, 1}, {0, 70}, {15, 1},  {16, 2},
                               {63, 1}, {0, 1},  {130, 9}, {1, 1},  {999, 33}};
inline const Lengths kShort = {{0, 5}, {37, 1}, {200, 1}, {0, 70}, {15, 1}, {16, 2}, {130, 9}};
inline const Lengths kDecode = {{4000, 1}, {17, 1}, {1234, 1}, {0, 1},
                                {2047, 1}, {64, 1}, {3999, 2}};
inline const Lengths kPrefill = {{0, 200}, {64, 129}, {1000, 300}, {3, 16}, {0, 17}};

}  // namespace valora::kernels::cuda
