// The machine itself: its instructions work, and it names the errors that kernels make.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"
#include "kernels/cuda/emulation/machine.h"

namespace valora::kernels::cuda {
namespace {

constexpr unsigned kThreads = 64;
constexpr int kRow = 8;  // values of 16 bytes

template <typename... Parameters, typename... Arguments>
Status run(void (*kernel)(Parameters...), unsigned blocks, size_t shared_bytes,
           const Arguments&... arguments) {
  return launch(kernel, blocks, kThreads, shared_bytes, nullptr, arguments...);
}

class MachineTest : public testing::TestWithParam<emulation::Schedule> {
 protected:
  MachineTest() { emulation::machine().schedule = GetParam(); }
  ~MachineTest() override { emulation::machine() = {}; }
};
INSTANTIATE_TEST_SUITE_P(Orders, MachineTest,
                         testing::Values(emulation::Schedule::kForward,
                                         emulation::Schedule::kBackward,
                                         emulation::Schedule::kRandom,
                                         emulation::Schedule::kUnfair));

__global__ void reverse_kernel(int* values) {
  wait_for_earlier_launch();
  VALORA_SHARED(int, held, [kThreads]);
  held[threadIdx.x] = values[blockIdx.x * kThreads + threadIdx.x];
  __syncthreads();
  values[blockIdx.x * kThreads + threadIdx.x] = held[kThreads - 1 - threadIdx.x];
}

TEST_P(MachineTest, BlocksShareMemoryBetweenBarriers) {
  std::vector<int> values(3 * kThreads), expected(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int>(i);
    expected[i / kThreads * kThreads + kThreads - 1 - i % kThreads] = values[i];
  }
  ASSERT_EQ(run(reverse_kernel, 3, 0, values.data()), cudaSuccess);
  EXPECT_EQ(values, expected);
}

__global__ void sums_kernel(float* sums) {
  wait_for_earlier_launch();
  const float sum = warp_sum(static_cast<float>(threadIdx.x));
  sums[threadIdx.x] = sum + __shfl_sync(kAllLanes, static_cast<float>(threadIdx.x), 3);
}

TEST_P(MachineTest, LanesExchangeValues) {
  std::vector<float> sums(kThreads);
  ASSERT_EQ(run(sums_kernel, 1, 0, sums.data()), cudaSuccess);
  EXPECT_EQ(sums.front(), 496 + 3);
  EXPECT_EQ(sums.back(), 496 + 32 * 32 + 35);
}

// c = a b with a [16, 16] and b [16, 8] in shared memory. b is stored by rows of k; ldmatrix
// transposes it.
template <typename T>
__global__ void product_kernel(const T* a, const T* b, float* c) {
  wait_for_earlier_launch();
  VALORA_SHARED(T, rows, [16 * 16]);
  VALORA_SHARED(T, columns, [16 * 16]);
  const int lane = threadIdx.x % kWarpSize, row = lane % 16, half = lane / 16 * kRow;
  copy_async(shared_address(rows + row * 16 + half), a + row * 16 + half, true);
  copy_async(shared_address(columns + row * 16 + half), b + row * kRow, half == 0);
  commit_copies();
  wait_copies<0>();
  __syncwarp();
  uint32_t left[4], right[4];
  load_matrices(left, shared_address(rows + row * 16 + half));
  load_transposed(right, shared_address(columns + row * 16 + half));
  float sums[4] = {};
  mma<T>(sums, left[0], left[1], left[2], left[3], right[0], right[1]);
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

template <typename T>
void check_product() {
  std::vector<T> memory(16 * 16 + 16 * 8 + 8);
  auto* a = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(memory.data()) + 15) / 16 * 16);
  T* b = a + 16 * 16;
  for (int i = 0; i < 16 * 16; ++i) a[i] = from_float<T>(static_cast<float>(i % 7 - 3));
  for (int i = 0; i < 16 * 8; ++i) b[i] = from_float<T>(static_cast<float>(i % 5 - 1));
  std::vector<float> c(16 * 8);
  ASSERT_EQ(launch(product_kernel<T>, 1, 32, 0, nullptr, a, b, c.data()), cudaSuccess);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += to_float(a[row * 16 + k]) * to_float(b[k * 8 + column]);
      EXPECT_EQ(c[row * 8 + column], sum) << row << " " << column;
    }
}
TEST_P(MachineTest, MultipliesOnTensorCores) {
  check_product<bf16>();
  check_product<fp16>();
}

TEST(Fp16OfTheHost, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const __half v{static_cast<uint16_t>(bits)};
    const float exact = __half2float(v);
    if (exact != exact) continue;
    EXPECT_EQ(exact, static_cast<float>(std::bit_cast<_Float16>(v.bits))) << bits;
    EXPECT_EQ(__float2half_rn(exact).bits, v.bits);
    const float between = exact * 1.00048828125f;  // half a unit in the last place for some
    EXPECT_EQ(__float2half_rn(between).bits,
              std::bit_cast<uint16_t>(static_cast<_Float16>(between)));
  }
}

TEST(EmulatedLaunch, EnforcesGpuLimits) {
  std::vector<float> sums(kThreads);
  for (const int capability : {80, 86, 89, 90, 120}) {
    ASSERT_TRUE(emulation::choose_gpu(capability));
    EXPECT_EQ(cuda::capability(), capability);
    const auto most = static_cast<size_t>(shared_bytes());
    EXPECT_EQ(run(sums_kernel, 1, most, sums.data()), cudaSuccess);
    EXPECT_EQ(run(sums_kernel, 1, most + 1, sums.data()), cudaErrorInvalidValue);
  }
  emulation::machine() = {};
  EXPECT_FALSE(emulation::choose_gpu(75));
  EXPECT_EQ(launch(sums_kernel, 1, 1056, 0, nullptr, sums.data()), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(sums_kernel, dim3(1, 65536), 32, 0, nullptr, sums.data()),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(sums_kernel, 0, 32, 0, nullptr, sums.data()), cudaErrorInvalidConfiguration);
}

TEST(EmulatedLaunch, RecordedDuringCapture) {
  std::vector<int> values(kThreads, 1), reversed(kThreads, 1);
  values[0] = reversed[kThreads - 1] = 5;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(launch(reverse_kernel, 1, kThreads, 0, stream, values.data()), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(values[0], 5);
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  EXPECT_EQ(values, reversed);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

enum class Fault {
  kBarrierOfSome,
  kBarrierAfterEnd,
  kBarrierBesideShuffle,
  kOtherOperation,
  kSomeLanes,
  kLeavesWarp,
  kNotWaited,
  kWaitedButNoBarrier,
  kCopyOverRead,
  kLeftCopies,
  kMatrixOutside,
  kWriteOutside,
  kWriteBefore,
  kMisaligned,
  kTooMuch,
  kTooEarly,
};

// Makes one mistake in warp 1 of block 2, in some cases together with other warps.
__global__ void faulty_kernel(Fault fault, char* global) {
  VALORA_SHARED(uint4, tile, [kThreads]);
  const unsigned thread = threadIdx.x;
  const uint32_t own = shared_address(tile + thread), other = shared_address(tile + thread % 32);
  uint32_t m[4];
  if (fault != Fault::kTooEarly || blockIdx.x != 2 || thread < 32) wait_for_earlier_launch();
  if (blockIdx.x != 2) return;
  switch (fault) {
    case Fault::kBarrierOfSome:
      if (thread != 33) __syncthreads();
      __syncthreads();
      break;
    case Fault::kBarrierAfterEnd:
      if (thread < 32) __syncthreads();
      break;
    case Fault::kBarrierBesideShuffle:
      if (thread < 40) __syncthreads();
      __shfl_sync(kAllLanes, 1, 0);
      break;
    case Fault::kOtherOperation:
      if (thread < 40)
        __shfl_sync(kAllLanes, 1, 0);
      else
        __syncwarp();
      break;
    case Fault::kSomeLanes: __syncwarp(0xffff); break;
    case Fault::kLeavesWarp:
      if (thread != 40) __syncwarp();
      break;
    case Fault::kNotWaited:
      copy_async(own, global, true);
      commit_copies();
      wait_copies<1>();
      __syncthreads();
      load_matrices(m, other);
      break;
    case Fault::kWaitedButNoBarrier:
      copy_async(own, global, true);
      commit_copies();
      wait_copies<0>();
      load_matrices(m, other);
      break;
    case Fault::kCopyOverRead:
      load_matrices(m, other);
      __syncwarp();
      if (thread >= 32) copy_async(other, global, true);
      commit_copies();
      wait_copies<0>();
      break;
    case Fault::kLeftCopies: copy_async(own, global, true); break;
    case Fault::kMatrixOutside: load_matrices(m, own + 16 * 32); break;
    case Fault::kWriteOutside: tile[thread + 32] = uint4{}; break;
    case Fault::kWriteBefore:
      reinterpret_cast<char*>(tile)[-1 - static_cast<int>(thread)] = 1;
      break;
    case Fault::kMisaligned:
      tile[thread] = *reinterpret_cast<uint4*>(global + 8 * (thread / 33));
      break;
    case Fault::kTooMuch: {
      VALORA_SHARED(uint4, more, [3009]);
      more[thread] = uint4{};
      break;
    }
    case Fault::kTooEarly: break;
  }
}

struct FaultCase {
  Fault fault;
  const char* message;
};

class FaultTest : public testing::TestWithParam<FaultCase> {};

TEST_P(FaultTest, NamesFaultAndLocation) {
  testing::FLAGS_gtest_death_test_style = "fast";
  alignas(16) static char memory[64];
  char* const global = memory;
  const std::string message = std::string("EMULATION: ") + GetParam().message +
                              ".*in faulty_kernel, block \\(2, 0, 0\\), thread [0-9]+";
  EXPECT_DEATH(run(faulty_kernel, 3, 0, GetParam().fault, global), message);
}
INSTANTIATE_TEST_SUITE_P(
    Faults, FaultTest,
    testing::Values(
        FaultCase{Fault::kBarrierOfSome, "ends while threads of its block wait at a barrier"},
        FaultCase{Fault::kBarrierAfterEnd, "ends while threads of its block wait at a barrier"},
        FaultCase{Fault::kBarrierBesideShuffle, "waits "},
        FaultCase{Fault::kOtherOperation, "does another warp operation"},
        FaultCase{Fault::kSomeLanes, "does a warp operation with a mask of some lanes"},
        FaultCase{Fault::kLeavesWarp, "(ends while lanes of its warp wait|waits for lanes)"},
        FaultCase{Fault::kNotWaited,
                  "ldmatrix of what cp.async of thread [0-9]+ has not been waited"},
        FaultCase{Fault::kWaitedButNoBarrier, "ldmatrix of what cp.async of thread"},
        FaultCase{Fault::kCopyOverRead, "cp.async over what ldmatrix read"},
        FaultCase{Fault::kLeftCopies, "ends without waiting for its copies"},
        FaultCase{Fault::kMatrixOutside, "ldmatrix outside of the shared memory"},
        FaultCase{Fault::kTooMuch, "declares more than 48 kB"},
        FaultCase{Fault::kTooEarly, "does not wait for the launch before it"}),
    [](const auto& test) { return "Fault" + std::to_string(static_cast<int>(test.param.fault)); });

#ifndef VALORA_SANITIZED  // the sanitizers report it differently
INSTANTIATE_TEST_SUITE_P(
    InvalidAccesses, FaultTest,
    testing::Values(FaultCase{Fault::kWriteOutside,
                              "accesses 0x[0-9a-f]+, which is not its memory"},
                    FaultCase{Fault::kMisaligned,
                              "accesses 16 bytes at 0x[0-9a-f]+, which is not a multiple of 16"},
                    FaultCase{Fault::kWriteBefore, "wrote before a declaration of shared memory"}),
    [](const auto& test) { return "Fault" + std::to_string(static_cast<int>(test.param.fault)); });
#endif

}  // namespace
}  // namespace valora::kernels::cuda
