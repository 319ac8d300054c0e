// Launches beside those of a stream, as a branch of the graph into which it is captured.
#pragma once

#include "kernels/cuda/types.h"

namespace valora::kernels::cuda {

// One at a time. What it launches begins after all that was launched on the main stream before the
// branch began. A stream that is not under capture gets no branch: it would cost the host more than
// it saves.
class Branch {
 public:
  explicit Branch(Stream main);

  Stream stream() const { return stream_; }  // the main one if there is no branch
  // The main stream's next launches begin after all of the branch. Without it, a capture fails.
  Status join();

 private:
  Stream main_, stream_;
};

}  // namespace valora::kernels::cuda
