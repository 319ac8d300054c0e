// Records what a thread does on the emulated GPU, to repeat it as a CUDA graph's replay does.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace valora::ops::emulated {

struct Recording {
  std::vector<std::function<void()>> calls;  // in order
  std::vector<at::Tensor> memory;            // allocated while recording, used by the calls
};

// The recording of this thread; null if there is none.
Recording*& recording();

}  // namespace valora::ops::emulated
