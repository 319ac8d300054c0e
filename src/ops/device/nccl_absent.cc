// Used by builds without NCCL.
#include <c10/util/Exception.h>

#include "ops/device/gpu_communicator.h"

namespace valora::ops {

std::string why_no_gpu_communicator() {
  return "this build has no NCCL: it is part of builds with a CUDA torch and nccl.h";
}

std::unique_ptr<Communicator> make_gpu_communicator(int) {
  TORCH_CHECK(false, why_no_gpu_communicator());
}

}  // namespace valora::ops
