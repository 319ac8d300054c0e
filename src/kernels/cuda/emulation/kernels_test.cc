// Runs the cases of cuda_kernels_test on emulated GPUs with several orders of threads.
// VALORA_CONFORMANCE=full runs all cases; otherwise only those with little work run. VALORA_SHARE
// scales how much counts as little, and VALORA_SEED selects the orders and the random cases.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "kernels/cuda/emulation/machine.h"
#include "kernels/cuda/testing/cases/cases.h"

namespace valora::kernels::cuda::emulation {
namespace {

struct Kernels {
  const char* name;
  bool (*test)(Dtype, const Selection&);
  double most_work;  // largest work of a case in the sample
};
struct Order {
  const char* name;
  Schedule schedule;
  int capability;
};

constexpr Kernels kKernels[] = {
    {"Elementwise", test_elementwise, 4e4},  {"Delta", test_delta, 8e6},
    {"RotateStore", test_rotate_store, 1e5}, {"Attention", test_attention, 1.5e7},
    {"Prompts", test_prompts, 1.5e7},        {"Lora", test_lora, 3e6},
    {"Integers", test_integers, 6e6},        {"Merge", test_merge, 3e6},
    {"Sampling", test_sampling, 3e5},        {"Vocabulary", test_vocabulary, 3e5}};
#ifdef VALORA_SANITIZED
constexpr double kShare = 0.02;  // factor on the work of a case
constexpr int kRandomCases = 2;
constexpr Dtype kDtypes[] = {Dtype::kFloat, Dtype::kBf16};  // fp16 shares bf16's code
#elif defined(VALORA_RACES)
constexpr double kShare = 0.1;
constexpr int kRandomCases = 2;
constexpr Dtype kDtypes[] = {Dtype::kFloat, Dtype::kBf16};
#else
constexpr double kShare = 1;
constexpr int kRandomCases = 12;
constexpr Dtype kDtypes[] = {Dtype::kFloat, Dtype::kBf16, Dtype::kFp16};
#endif
constexpr Order kOrders[] = {{"InOrder", Schedule::kForward, 90},
#ifndef VALORA_RACES  // races are found in any order
                             {"Backward", Schedule::kBackward, 80},
                             {"Unfair", Schedule::kUnfair, 120},
#endif
                             {"Random", Schedule::kRandom, 89}};

bool takes_all() {
  const char* conformance = std::getenv("VALORA_CONFORMANCE");
  return conformance != nullptr && std::string(conformance) == "full";
}

double number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtod(text, nullptr) : 1;
}

class EmulatedKernels : public testing::TestWithParam<std::tuple<Kernels, Dtype, Order>> {
 protected:
  ~EmulatedKernels() override { machine() = {}; }
};

TEST_P(EmulatedKernels, MatchTheirReferences) {
  const auto& [kernels, dtype, order] = GetParam();
  ASSERT_TRUE(choose_gpu(order.capability));
  machine().schedule = order.schedule;
  machine().seed = static_cast<uint64_t>(number_of("VALORA_SEED"));
  Selection selection;
  selection.seed = 8 * machine().seed + static_cast<uint64_t>(order.schedule);
  if (!takes_all()) {
    // Products without tensor cores are done by the threads; fp16 shares bf16's code.
    const double share = dtype == Dtype::kFloat ? 0.1 : dtype == Dtype::kFp16 ? 0.3 : 1;
    selection.most_work = number_of("VALORA_SHARE") * kShare * share * kernels.most_work;
    selection.random_cases = kRandomCases;
  }
  EXPECT_TRUE(kernels.test(dtype, selection));
}

std::string name_of_run(const testing::TestParamInfo<EmulatedKernels::ParamType>& run) {
  const auto& [kernels, dtype, order] = run.param;
  const char* dtypes[] = {"Fp32", "Bf16", "Fp16"};
  return std::string(kernels.name) + dtypes[static_cast<int>(dtype)] + order.name;
}
INSTANTIATE_TEST_SUITE_P(All, EmulatedKernels,
                         testing::Combine(testing::ValuesIn(kKernels), testing::ValuesIn(kDtypes),
                                          testing::ValuesIn(kOrders)),
                         name_of_run);

}  // namespace
}  // namespace valora::kernels::cuda::emulation
