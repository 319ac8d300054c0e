// What samplers on the host need of rows of logits that stay on a GPU, in two launches and a small
// copy each way.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <span>

#include "kernels/types/candidates.h"

namespace valora::ops {

// Keeps its memory of the host and the GPU for the next step. Used by one thread.
class LogitCandidates {
 public:
  // Whether there are kernels for this device.
  static bool serves(at::Device device);

  LogitCandidates();
  ~LogitCandidates();

  // logits: float [rows, columns] on the device, contiguous. Launches the search, and a copy of
  // what was found. Throws c10::Error if a launch is refused.
  void find(const at::Tensor& logits, std::span<const kernels::CandidateQuery* const> queries);
  // Of the i-th query, once all launched work has ended; valid until the next find().
  kernels::Candidates found(size_t i) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace valora::ops
