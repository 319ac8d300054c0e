// What a thread does on the emulated GPU, written down to be done again: how a CUDA graph replays
// it.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace valora::ops::emulated {

struct Recording {
  std::vector<std::function<void()>> calls;  // in order
  std::vector<at::Tensor> memory;            // made meanwhile, which the calls use
};

// Of this thread; null: nothing is recorded.
Recording*& recording();

}  // namespace valora::ops::emulated
