#include "kernels/cuda/branch.h"

#include <cuda_runtime_api.h>

namespace valora::kernels::cuda {
namespace {

// Shared by all branches of a thread, whose GPU never changes, for the life of the process: a
// capture keeps what events recorded, not the events themselves.
struct BranchObjects {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  bool made = false;
};

const BranchObjects& branch_objects() {
  thread_local const BranchObjects objects = [] {
    BranchObjects o;
    o.made = cudaStreamCreateWithFlags(&o.stream, cudaStreamNonBlocking) == cudaSuccess &&
             cudaEventCreateWithFlags(&o.begin, cudaEventDisableTiming) == cudaSuccess &&
             cudaEventCreateWithFlags(&o.end, cudaEventDisableTiming) == cudaSuccess;
    (void)cudaGetLastError();
    return o;
  }();
  return objects;
}

bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
         status == cudaStreamCaptureStatusActive;
}

}  // namespace

Branch::Branch(Stream main) : main_(main), stream_(main) {
  auto* const from = static_cast<cudaStream_t>(main);
  if (!is_captured(from)) return;
  const BranchObjects& o = branch_objects();
  if (o.made && cudaEventRecord(o.begin, from) == cudaSuccess &&
      cudaStreamWaitEvent(o.stream, o.begin, 0) == cudaSuccess)
    stream_ = o.stream;
}

Status Branch::join() {
  if (stream_ == main_) return cudaSuccess;
  const BranchObjects& o = branch_objects();
  const cudaError_t status = cudaEventRecord(o.end, o.stream);
  return status != cudaSuccess ? status
                               : cudaStreamWaitEvent(static_cast<cudaStream_t>(main_), o.end, 0);
}

}  // namespace valora::kernels::cuda
