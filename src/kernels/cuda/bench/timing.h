// Times launches with CUDA events.
#pragma once

#include <functional>
#include <string>

#include "kernels/cuda/types.h"

namespace valora::kernels::cuda {

struct Figures {
  double bandwidth = 0;  // bytes/s of a large copy on this device, counting both reads and writes
};

// More than the L2 of any supported device: a benchmark rotates among operands of this total size.
inline constexpr size_t kRotatedBytes = size_t{160} << 20;

// How many sets of operands of `bytes` each a benchmark should rotate among.
int rotations(size_t bytes, int most);

// Seconds per launch: the median over batches of launches captured into a graph, which excludes
// host time. launch(i, stream): launches with the operands of set i.
double seconds_per_launch(const std::function<Status(int, Stream)>& launch, int sets);

double copy_bandwidth();

// Prints a line with the time and the share of the device's bandwidth or, if flops > 0, of the
// dense bf16 rate in the datasheet.
void print_result(const std::string& name, double seconds, double bytes, double flops,
                  const Figures& figures);

void bench_elementwise(const Figures& figures);
void bench_delta(const Figures& figures);
void bench_attention(const Figures& figures);
void bench_prompts(const Figures& figures);
void bench_lora(const Figures& figures);
void bench_integers(const Figures& figures);
void bench_merge(const Figures& figures);
void bench_sampling(const Figures& figures);

}  // namespace valora::kernels::cuda
