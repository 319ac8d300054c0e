// Compares the CUDA kernels with references computed in double on the host. Prints a line per group
// and per failed case. Exit status: 0: all passed, 1: a case failed, 2: no device, 3: a CUDA call
// failed.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/device_memory.h"

int main(int argc, char** argv) {
  using namespace valora::kernels::cuda;
  struct {
    const char* name;
    bool (*test)(Dtype, const Selection&);
  } const groups[] = {{"elementwise", test_elementwise},   {"delta", test_delta},
                      {"rotate_store", test_rotate_store}, {"attention", test_attention},
                      {"prompts", test_prompts},           {"lora", test_lora},
                      {"integers", test_integers},         {"merge", test_merge},
                      {"sampling", test_sampling},         {"vocabulary", test_vocabulary}};
  if (argc > 1 && std::strcmp(argv[1], "--help") == 0) {
    std::printf(
        "usage: cuda_kernels_test "
        "[elementwise|delta|rotate_store|attention|prompts|lora|integers|merge|sampling|"
        "vocabulary]…\n");
    return 0;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no CUDA device\n");
    return 2;
  }
  bool passed = true;
  for (const auto& group : groups) {
    bool chosen = argc == 1;
    for (int i = 1; i < argc; ++i) chosen = chosen || std::strcmp(argv[i], group.name) == 0;
    if (!chosen) continue;
    const auto begin = std::chrono::steady_clock::now();
    for (const Dtype dtype : {Dtype::kFloat, Dtype::kBf16, Dtype::kFp16})
      passed = group.test(dtype, {}) && passed;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%s: %.1f s\n", group.name, seconds.count());
    std::fflush(stdout);
  }
  std::printf(passed ? "all passed\n" : "SOME FAILED\n");
  return passed ? 0 : 1;
}
