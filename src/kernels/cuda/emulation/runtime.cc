// The CUDA runtime functions that callers of the kernels use, and the machine they run on.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/emulation/access_observer.h"
#include "kernels/cuda/emulation/launch.h"
#include "kernels/cuda/emulation/machine.h"

struct EmulatedGraph {
  std::vector<valora::kernels::cuda::emulation::Launch> launches;
};
struct EmulatedStream {
  std::unique_ptr<EmulatedGraph> capture;
  EmulatedStream* with = nullptr;  // the stream whose capture records its launches
  EmulatedGraph* graph() const { return with != nullptr ? with->capture.get() : capture.get(); }
};
struct EmulatedEvent {
  EmulatedStream* of = nullptr;
};

namespace valora::kernels::cuda::emulation {
namespace {

constexpr unsigned kMostAcross = 65535;
constexpr int kCacheBytes = 1 << 20;  // small, so that flushing it is fast

cudaError_t last_error = cudaSuccess;
std::vector<EmulatedStream*> captured_with_others;

}  // namespace

bool choose_gpu(int capability) {
  struct Limits {
    int capability, multiprocessors, block_shared_bytes;
  };
  constexpr Limits kGpus[] = {{80, 108, 163 << 10},
                              {86, 84, 99 << 10},
                              {89, 128, 99 << 10},
                              {90, 132, 227 << 10},
                              {120, 170, 99 << 10}};
  for (const Limits& gpu : kGpus)
    if (gpu.capability == capability) {
      Machine& m = machine();
      m.capability = capability, m.multiprocessors = gpu.multiprocessors;
      m.block_shared_bytes = gpu.block_shared_bytes;
      return true;
    }
  return false;
}

// Launches run one after another, and so do their blocks, but no kernel may depend on the order of
// blocks.
void run_blocks(const Launch& launch) {
  static std::mutex running;
  const std::lock_guard lock(running);
  static Block block;
  if (access_observer() != nullptr) access_observer()->launch_began();
  const uint64_t count = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  std::vector<uint64_t> order;
  if (machine().schedule == Schedule::kRandom || machine().schedule == Schedule::kUnfair) {
    order.resize(count);
    std::iota(order.begin(), order.end(), uint64_t{0});
    std::minstd_rand random(static_cast<uint32_t>(machine().seed));
    std::shuffle(order.begin(), order.end(), random);
  }
  for (uint64_t n = 0; n < count; ++n) {
    const bool backward = machine().schedule == Schedule::kBackward;
    const uint64_t i = !order.empty() ? order[n] : backward ? count - 1 - n : n;
    block.run(launch, {static_cast<unsigned>(i % launch.grid.x),
                       static_cast<unsigned>(i / launch.grid.x % launch.grid.y),
                       static_cast<unsigned>(i / launch.grid.x / launch.grid.y)});
  }
}

cudaError_t run(Launch launch, cudaStream_t stream) {
  const dim3 &grid = launch.grid, &block = launch.block;
  if (launch.shared_bytes > static_cast<size_t>(machine().block_shared_bytes))
    return last_error = cudaErrorInvalidValue;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT32_MAX || grid.y > kMostAcross ||
      grid.z > kMostAcross || block.x == 0 || block.x > kMostThreads || block.y != 1 ||
      block.z != 1)
    return last_error = cudaErrorInvalidConfiguration;
  if (stream != nullptr && stream->graph() != nullptr) {
    stream->graph()->launches.push_back(std::move(launch));
    return cudaSuccess;
  }
  if (before_launch() != nullptr)
    if (const int refused = before_launch()(launch); refused != 0)
      return refused < 0 ? cudaSuccess : last_error = static_cast<cudaError_t>(refused);
  run_blocks(launch);
  return cudaSuccess;
}

}  // namespace valora::kernels::cuda::emulation

namespace emulation = valora::kernels::cuda::emulation;

cudaError_t cudaGetLastError() { return std::exchange(emulation::last_error, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
  }
  return "unknown";
}
const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
  }
  return "unknown";
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  constexpr size_t kAlignment = 256;
  const size_t whole = (bytes + kAlignment) / kAlignment * kAlignment;
  *memory = std::aligned_alloc(kAlignment, whole);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  if (auto* observer = emulation::access_observer()) observer->memory_began(*memory, whole, false);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (auto* observer = emulation::access_observer()) observer->memory_ended(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new EmulatedStream;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->capture = std::make_unique<EmulatedGraph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->capture.release();
  for (EmulatedStream* other : std::exchange(emulation::captured_with_others, {}))
    other->with = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const bool captured = stream != nullptr && stream->graph() != nullptr;
  *status = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->of = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->of->graph() == nullptr || stream->capture != nullptr) return cudaSuccess;
  stream->with = event->of;
  emulation::captured_with_others.push_back(stream);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new EmulatedGraph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const emulation::Launch& launch : executable->launches) emulation::run_blocks(launch);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const emulation::Machine& m = emulation::machine();
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = m.multiprocessors; break;
    case cudaDevAttrL2CacheSize: *value = emulation::kCacheBytes; break;
    case cudaDevAttrComputeCapabilityMajor: *value = m.capability / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = m.capability % 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = m.block_shared_bytes; break;
  }
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::snprintf(properties->name, sizeof properties->name, "emulated sm_%d",
                emulation::machine().capability);
  return cudaSuccess;
}
