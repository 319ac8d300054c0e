// The cases of cuda_kernels_test on emulated GPUs, in several orders of threads: with
// VALORA_CONFORMANCE=full all of them, else those that take little work, VALORA_SHARE times as much
// as usual. VALORA_SEED chooses the orders and the random cases.
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
  double most_work;  // of the sample
};
struct Order {
  const char* name;
  Schedule schedule;
  int capability;
};

constexpr Kernels kKernels[] = {{"Elementwise", test_elementwise, 4e4},
                                {"RotateStore", test_rotate_store, 1e5},
                                {"Attention", test_attention, 1.5e7},
                                {"Lora", test_lora, 3e6},
                                {"Merge", test_merge, 3e6},
                                {"Sampling", test_sampling, 3e5}};
#ifdef VALORA_SANITIZED
constexpr double kShare = 0.02;  // of the work of a case
constexpr int kRandomCases = 2;
constexpr Dtype kDtypes[] = {Dtype::kFloat, Dtype::kBf16};  // fp16 has the code of bf16
#else
constexpr double kShare = 1;
constexpr int kRandomCases = 12;
constexpr Dtype kDtypes[] = {Dtype::kFloat, Dtype::kBf16, Dtype::kFp16};
#endif
constexpr Order kOrders[] = {{"InOrder", Schedule::kForward, 90},
                             {"Backward", Schedule::kBackward, 80},
                             {"Random", Schedule::kRandom, 89},
                             {"Unfair", Schedule::kUnfair, 120}};

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
    // Without tensor cores the threads do the work of the products; fp16 has the code of bf16.
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
