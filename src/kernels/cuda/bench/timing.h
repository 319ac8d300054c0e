// Times of launches by CUDA events.
#pragma once

#include <functional>
#include <string>

#include "kernels/cuda/types.h"

namespace valora::kernels::cuda {

struct Figures {
  double bandwidth = 0;  // bytes/s of a large copy on this device, read and written bytes together
};

// More than the L2 of any device in use: a benchmark takes its operands in turns from this much.
inline constexpr size_t kRotatedBytes = size_t{160} << 20;

// The number of sets of operands of `bytes` each that a benchmark should rotate among.
int rotations(size_t bytes, int most);

// Seconds per launch: the median of batches of launches that are captured into a graph, so that the
// time of the host does not count. launch(i, stream): with the operands of set i.
double seconds_per_launch(const std::function<Status(int, Stream)>& launch, int sets);

double copy_bandwidth();

// Prints a line with the time and the share of the device's bandwidth or, if flops > 0, of the
// datasheet's dense bf16 rate.
void print_result(const std::string& name, double seconds, double bytes, double flops,
                  const Figures& figures);

void bench_elementwise(const Figures& figures);
void bench_attention(const Figures& figures);
void bench_lora(const Figures& figures);
void bench_merge(const Figures& figures);
void bench_sampling(const Figures& figures);

}  // namespace valora::kernels::cuda
