// For builds with a libtorch without CUDA.
#include "ops/launch/launch_capture.h"

namespace valora::ops {

std::unique_ptr<LaunchCapture> LaunchCapture::make(at::Device) { return nullptr; }

}  // namespace valora::ops
