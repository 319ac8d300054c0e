// Of builds with a torch that has no CUDA.
#include "ops/launch_capture.h"

namespace valora::ops {

std::unique_ptr<LaunchCapture> LaunchCapture::make(at::Device) { return nullptr; }

}  // namespace valora::ops
