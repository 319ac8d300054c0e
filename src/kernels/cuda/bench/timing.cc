#include "kernels/cuda/bench/timing.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "kernels/cuda/testing/device_memory.h"

namespace valora::kernels::cuda {
namespace {

constexpr double kDatasheetFlops = 989e12;  // H100 SXM, dense bf16
constexpr double kBatchSeconds = 3e-3;
constexpr int kBatches = 9;

class Events {
 public:
  Events() {
    require(cudaEventCreate(&begin_), "cudaEventCreate");
    require(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Events() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  template <typename Body>
  double seconds(cudaStream_t stream, const Body& body) {
    require(cudaEventRecord(begin_, stream), "cudaEventRecord");
    body();
    require(cudaEventRecord(end_, stream), "cudaEventRecord");
    require(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t begin_, end_;
};

}  // namespace

int rotations(size_t bytes, int most) {
  const size_t sets = (kRotatedBytes + bytes - 1) / std::max<size_t>(bytes, 1);
  return static_cast<int>(std::clamp<size_t>(sets, 1, most));
}

double seconds_per_launch(const std::function<Status(int, Stream)>& launch, int sets) {
  cudaStream_t stream;
  require(cudaStreamCreate(&stream), "cudaStreamCreate");
  Events events;
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) require(launch(i % sets, stream), "launch");
  };
  run(2);
  const double first = events.seconds(stream, [&] { run(8); }) / 8;
  const int batch = std::clamp(static_cast<int>(kBatchSeconds / first), 2, 500);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  run(batch);
  require(cudaStreamEndCapture(stream, &graph), "end capture");
  require(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  require(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  std::vector<double> times;
  for (int i = 0; i < kBatches; ++i)
    times.push_back(events.seconds(
        stream, [&] { require(cudaGraphLaunch(executable, stream), "cudaGraphLaunch"); }));
  require(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  require(cudaGraphDestroy(graph), "cudaGraphDestroy");
  require(cudaStreamDestroy(stream), "cudaStreamDestroy");
  std::nth_element(times.begin(), times.begin() + kBatches / 2, times.end());
  return times[kBatches / 2] / batch;
}

double copy_bandwidth() {
  constexpr size_t kBytes = size_t{1} << 30;
  const DeviceMemory from(kBytes), to(kBytes);
  const double seconds = seconds_per_launch(
      [&](int, Stream stream) {
        return static_cast<Status>(cudaMemcpyAsync(to.data(), from.data(), kBytes,
                                                   cudaMemcpyDeviceToDevice,
                                                   static_cast<cudaStream_t>(stream)));
      },
      1);
  return 2 * kBytes / seconds;
}

void print_result(const std::string& name, double seconds, double bytes, double flops,
                  const Figures& figures) {
  std::printf("%-58s %9.2f us", name.c_str(), seconds * 1e6);
  if (flops > 0)
    std::printf("  %7.1f TFLOP/s %5.1f %% of datasheet", flops / seconds * 1e-12,
                100 * flops / seconds / kDatasheetFlops);
  else
    std::printf("  %7.0f GB/s %5.1f %% of copy", bytes / seconds * 1e-9,
                100 * bytes / seconds / figures.bandwidth);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace valora::kernels::cuda
