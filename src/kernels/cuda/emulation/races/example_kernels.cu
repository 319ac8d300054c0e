#include "kernels/cuda/emulation/races/example_kernels.h"

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"

namespace valora::kernels::cuda::emulation {
namespace {

__device__ inline void meet(Order order) {
  if (order == Order::kWarp) __syncwarp();
  if (order == Order::kBlock) __syncthreads();
}

__device__ inline unsigned place() { return blockIdx.x * kThreads + threadIdx.x; }

__global__ void exchange_kernel(Order first, Order second, unsigned step, float* out) {
  wait_for_earlier_launch();
  VALORA_SHARED(float, held, [kThreads]);
  held[threadIdx.x] = 1;
  meet(first);
  const float other = held[threadIdx.x ^ step];
  meet(second);
  held[threadIdx.x] = other + 1;
  out[place()] = held[threadIdx.x];
}

__global__ void shuffle_kernel(float* out) {
  wait_for_earlier_launch();
  VALORA_SHARED(float, held, [kThreads]);
  held[threadIdx.x] = 1;
  const float one = __shfl_xor_sync(kAllLanes, 1.0f, 1);
  out[place()] = held[threadIdx.x ^ 1] + one;
}

__global__ void write_after_reads_kernel(Order order, float* values) {
  wait_for_earlier_launch();
  VALORA_SHARED(float, held, [1]);
  if (threadIdx.x == 0) held[0] = 1;
  __syncthreads();
  const float read = held[0];
  meet(order);
  if (threadIdx.x == 5) held[0] = read + 1;
  values[place()] = read;
}

__global__ void bytes_kernel(uint8_t* bytes) {
  wait_for_earlier_launch();
  bytes[place()] = static_cast<uint8_t>(threadIdx.x);
}

__global__ void write_kernel(float* value) {
  wait_for_earlier_launch();
  if (threadIdx.x == 0) *value = 1;
}

__global__ void read_kernel(float* values) {
  wait_for_earlier_launch();
  if (threadIdx.x == 0) values[1 + blockIdx.x] = values[0];
  if (threadIdx.x == 1 && blockIdx.x == 1) values[0] = 1;
}

__global__ void last_block_kernel(Order order, float* parts, unsigned* counter, float* sum) {
  wait_for_earlier_launch();
  VALORA_SHARED(unsigned, count, [1]);
  if (threadIdx.x == kThreads - 1) parts[blockIdx.x] = 1;
  meet(order);
  if (threadIdx.x == 0) count[0] = count_in_turns(counter, kBlocks - 1);
  __syncthreads();
  if (count[0] < kBlocks - 1 || threadIdx.x != 0) return;
  float total = 0;
  for (unsigned i = 0; i < kBlocks; ++i) total += parts[i];
  *sum = total;
}

__global__ void late_wait_kernel(const float* values, float* out) {
  wait_for_earlier_launch();
  VALORA_SHARED(float, held, [4 * kThreads]);
  copy_async(shared_address(held + 4 * threadIdx.x), values + 4 * threadIdx.x, true);
  commit_copies();
  __syncthreads();
  out[place()] = held[4 * (threadIdx.x ^ 1)];
  wait_copies<0>();
}

template <typename... Parameters, typename... Arguments>
Status run(void (*kernel)(Parameters...), const Arguments&... arguments) {
  return cuda::launch(kernel, kBlocks, kThreads, 0, nullptr, arguments...);
}

}  // namespace

Status exchange_values(Order first, Order second, unsigned step, float* out) {
  return run(exchange_kernel, first, second, step, out);
}
Status read_after_shuffle(float* out) { return run(shuffle_kernel, out); }
Status write_after_reads(Order order, float* values) {
  return run(write_after_reads_kernel, order, values);
}
Status write_bytes(uint8_t* bytes) { return run(bytes_kernel, bytes); }
Status write_from_all_blocks(float* value) { return run(write_kernel, value); }
Status read_what_block_writes(float* values) { return run(read_kernel, values); }
Status add_in_last_block(Order order, float* parts, unsigned* counter, float* sum) {
  return run(last_block_kernel, order, parts, counter, sum);
}
Status read_before_wait(const float* values, float* out) {
  return run(late_wait_kernel, values, out);
}

}  // namespace valora::kernels::cuda::emulation
