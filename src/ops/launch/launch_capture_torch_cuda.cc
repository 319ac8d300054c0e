#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <utility>

#include "base/log/log.h"
#include "ops/launch/capture_launches.h"
#include "ops/launch/launch_capture.h"

namespace valora::ops {
namespace {

namespace cuda_memory = c10::cuda::CUDACachingAllocator;

// The memory in which all graphs compute; they run one at a time. torch's allocator frees the pool
// with its last graph and then requires a new id.
class GraphMemory {
 public:
  explicit GraphMemory(c10::cuda::CUDAStream stream) : stream_(stream) {}

  void begin() {
    if (users_ == 0) id_ = at::cuda::graph_pool_handle();
    cuda_memory::beginAllocateToPool(
        device(), id_, [only = stream_.stream()](cudaStream_t s) { return s == only; });
    ++users_;
  }
  void end() { cuda_memory::endAllocateToPool(device(), id_); }
  void release() {
    --users_;
    cuda_memory::releasePool(device(), id_);
  }

 private:
  c10::DeviceIndex device() const { return stream_.device_index(); }

  c10::cuda::CUDAStream stream_;  // on which captures are made
  at::cuda::MempoolId_t id_{};
  int users_ = 0;
};

// The program may have a second CUDA runtime besides torch's. torch does not clear that runtime's
// last error, which our next launch would then report as its own.
void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  C10_CUDA_CHECK(status);
}

// Used instead of at::cuda::CUDAGraph: if a capture fails, that class does not end its allocations,
// and in some releases its destruction frees library workspaces of its stream that others still
// use.
class Launches final : public CaptureCalls, public CapturedLaunches {
 public:
  Launches(c10::cuda::CUDAStream stream, std::shared_ptr<GraphMemory> memory)
      : stream_(stream), memory_(std::move(memory)) {}
  ~Launches() override {
    if (!graph_) return;
    (void)cudaGraphExecDestroy(graph_);
    (void)cudaGetLastError();
    release_memory();
  }

  void replay() override { check(cudaGraphLaunch(graph_, c10::cuda::getCurrentCUDAStream())); }

  void begin_memory() override { memory_->begin(); }
  void end_memory() noexcept override {
    warned([&] { memory_->end(); });
  }
  void release_memory() noexcept override {
    warned([&] { memory_->release(); });
  }
  // Thread-local mode lets the mover's thread continue to copy.
  void begin_launches() override {
    check(cudaStreamBeginCapture(stream_.stream(), cudaStreamCaptureModeThreadLocal));
  }
  void end_launches() override {
    check(cudaStreamEndCapture(stream_.stream(), &captured_));
    TORCH_CHECK(captured_, "a captured step has no launches");
  }
  void abandon_launches() noexcept override {
    cudaGraph_t partial = nullptr;
    (void)cudaStreamEndCapture(stream_.stream(), &partial);
    if (partial) (void)cudaGraphDestroy(partial);
    (void)cudaGetLastError();  // report the first error, not this one
  }
  void make_graph() override {
    const cudaError_t made = cudaGraphInstantiate(&graph_, captured_, 0);
    (void)cudaGraphDestroy(captured_);
    if (made != cudaSuccess) graph_ = nullptr;
    check(made);
  }

 private:
  template <typename Call>
  static void warned(Call&& call) noexcept {
    try {
      call();
    } catch (const std::exception& e) {
      spdlog::error("the memory of CUDA graphs: {}", e.what());
    }
  }

  c10::cuda::CUDAStream stream_;
  std::shared_ptr<GraphMemory> memory_;
  cudaGraph_t captured_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
};

class CudaCapture final : public LaunchCapture {
 public:
  explicit CudaCapture(c10::DeviceIndex device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device)),
        memory_(std::make_shared<GraphMemory>(stream_)) {}

  std::unique_ptr<CapturedLaunches> capture(const std::function<void()>& launch) override {
    auto launches = std::make_unique<Launches>(stream_, memory_);
    c10::cuda::getCurrentCUDAStream().synchronize();
    const c10::cuda::CUDAStreamGuard guard(stream_);
    launch();
    stream_.synchronize();
    capture_launches(*launches, launch);
    return launches;
  }

 private:
  c10::cuda::CUDAStream stream_;  // on which captures are made; the mover uses another
  std::shared_ptr<GraphMemory> memory_;
};

}  // namespace

std::unique_ptr<LaunchCapture> LaunchCapture::make(at::Device device) {
  if (!device.is_cuda()) return nullptr;
  return std::make_unique<CudaCapture>(device.index());
}

}  // namespace valora::ops
