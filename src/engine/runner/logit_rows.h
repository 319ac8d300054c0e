// A step's logits for the samplers on the host. On CPUs the logits are there already. A GPU with
// the necessary kernels keeps them and answers the samplers' queries
// (serving/sampling/logit_row.h); others copy whole rows, and so do all with VALORA_GPU_SAMPLING=0.
// Used by the engine thread.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ops/launch/launched_work.h"
#include "ops/vocabulary/logit_candidates.h"
#include "serving/sampling/logit_row.h"

namespace valora {

// The rows of logits from which a sequence's tokens are chosen.
struct ChoiceRows {
  int64_t first = 0, count = 1;                  // in the step's logits
  int32_t vocab = 0;                             // number of valid columns
  std::optional<kernels::CandidateQuery> query;  // absent: whole rows are needed
  serving::Missing missing;                      // data that the last attempt at a choice lacked

  // Set by LogitRows::fetch():
  kernels::Candidates found;  // answer to the query; valid until the next step's queries
  at::Tensor copied;          // whole rows, [count, columns], or one part of a row, [tokens]
  int part = -1;              // index of that part
};

class LogitRows {
 public:
  // launched: the work queued on the device; must outlive this object.
  LogitRows(at::Device device, ops::LaunchedWork& launched);

  // True if queries are answered; otherwise rows are copied whole.
  bool answers() const { return candidates_ != nullptr; }
  // logits: float [rows, columns] on the device. Provides what each choice lacks: on the first call
  // answers to queries, or whole rows; later the missing data. No work is left on the device when
  // it returns.
  void fetch(const at::Tensor& logits, std::span<ChoiceRows* const> choices);

 private:
  void find(const at::Tensor& logits, std::span<ChoiceRows* const> choices);

  ops::LaunchedWork& launched_;
  std::unique_ptr<ops::LogitCandidates> candidates_;  // null: rows are copied whole
};

// Copies to host memory; waits until the logits are computed.
at::Tensor to_host(const at::Tensor& logits);

}  // namespace valora
