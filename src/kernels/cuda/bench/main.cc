// Times the CUDA kernels at the sizes of two models, in bf16. Exit status: 0: success, 2: no
// device, 3: a CUDA call failed.
#include <cstdio>
#include <cstring>

#include "kernels/cuda/bench/timing.h"
#include "kernels/cuda/testing/device_memory.h"

int main(int argc, char** argv) {
  using namespace valora::kernels::cuda;
  struct {
    const char* name;
    void (*bench)(const Figures&);
  } const groups[] = {{"elementwise", bench_elementwise},
                      {"delta", bench_delta},
                      {"attention", bench_attention},
                      {"prompts", bench_prompts},
                      {"lora", bench_lora},
                      {"integers", bench_integers},
                      {"merge", bench_merge},
                      {"sampling", bench_sampling}};
  if (argc > 1 && std::strcmp(argv[1], "--help") == 0) {
    std::printf(
        "usage: cuda_kernels_bench "
        "[elementwise|delta|attention|prompts|lora|integers|merge|sampling]…\n");
    return 0;
  }
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
    std::printf("no CUDA device\n");
    return 2;
  }
  Figures figures;
  figures.bandwidth = copy_bandwidth();
  std::printf("%s, %d multiprocessors, L2 %d MB; copy of 1 GiB: %.0f GB/s read and written\n",
              properties.name, properties.multiProcessorCount, properties.l2CacheSize >> 20,
              figures.bandwidth * 1e-9);
  for (const auto& group : groups) {
    bool chosen = argc == 1;
    for (int i = 1; i < argc; ++i) chosen = chosen || std::strcmp(argv[i], group.name) == 0;
    if (chosen) group.bench(figures);
  }
  return 0;
}
