// Extracts what host-side samplers need from rows of logits on a GPU, with two launches and a small
// copy in each direction.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <span>

#include "kernels/types/candidates.h"

namespace valora::ops {

// Keeps its host and GPU memory for the next step. Must be used from one thread.
class LogitCandidates {
 public:
  // True if there are kernels for this device.
  static bool serves(at::Device device);

  LogitCandidates();
  ~LogitCandidates();

  // logits: float [rows, columns] on the device, contiguous. Launches the search and a copy of its
  // results. Throws c10::Error if a launch is refused.
  void find(const at::Tensor& logits, std::span<const kernels::CandidateQuery* const> queries);
  // The result of query i, available once all launched work has ended; valid until the next find().
  kernels::Candidates found(size_t i) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace valora::ops
