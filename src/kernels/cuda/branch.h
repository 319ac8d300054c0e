// A branch of launches that run concurrently with those of a captured stream.
#pragma once

#include "kernels/cuda/types.h"

namespace valora::kernels::cuda {

// Only one may exist at a time. Its launches begin after everything launched on the main stream
// before the branch was created. If the stream is not being captured, there is no branch: it would
// cost the host more than it saves.
class Branch {
 public:
  explicit Branch(Stream main);

  Stream stream() const { return stream_; }  // the main stream if there is no branch
  // Makes later launches on the main stream wait for the branch. A capture fails without it.
  Status join();

 private:
  Stream main_, stream_;
};

}  // namespace valora::kernels::cuda
