#include "kernels/cuda/testing/replay.h"

#include "kernels/cuda/testing/device_memory.h"

namespace valora::kernels::cuda {

int replay_captured(const std::function<int(cudaStream_t)>& launch, int times,
                    const std::function<void()>& before_each) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  require(cudaStreamCreate(&stream), "cudaStreamCreate");
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  const int status = launch(stream);
  require(cudaStreamEndCapture(stream, &graph), "end capture");
  require(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; status == 0 && i < times; ++i) {
    require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    before_each();
    require(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  }
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  require(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  require(cudaGraphDestroy(graph), "cudaGraphDestroy");
  require(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return status;
}

}  // namespace valora::kernels::cuda
