// The logits of a step for the host's samplers. On CPUs they are there; a GPU keeps them, where it
// has kernels for it, and tells what the samplers ask (serving/sampling/logit_row.h), or copies
// whole rows. VALORA_GPU_SAMPLING=0 makes it copy all rows. Used by the engine thread.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ops/launched_work.h"
#include "ops/logit_candidates.h"
#include "serving/sampling/logit_row.h"

namespace valora {

// The rows from which the tokens of a sequence are chosen.
struct ChoiceRows {
  int64_t first = 0, count = 1;                  // of the step's logits
  int32_t vocab = 0;                             // the columns that count
  std::optional<kernels::CandidateQuery> query;  // absent: they are wanted whole
  serving::Missing missing;                      // after a choice that lacked something

  // By LogitRows::fetch():
  kernels::Candidates found;  // of the query; valid until the next step's
  at::Tensor copied;          // whole rows, [count, columns], or a part of the row, [tokens]
  int part = -1;              // which one
};

class LogitRows {
 public:
  // launched: what runs on the device; must outlive it.
  LogitRows(at::Device device, ops::LaunchedWork& launched);

  // Whether queries are answered.
  bool answers() const { return candidates_ != nullptr; }
  // logits: float [rows, columns] on the device. What the choices lack: answers to their queries,
  // or whole rows, at first; then what is missing. When it returns, nothing runs on the device.
  void fetch(const at::Tensor& logits, std::span<ChoiceRows* const> choices);

 private:
  void find(const at::Tensor& logits, std::span<ChoiceRows* const> choices);

  ops::LaunchedWork& launched_;
  std::unique_ptr<ops::LogitCandidates> candidates_;  // null: rows are copied whole
};

// In host memory; waits for what computes them.
at::Tensor to_host(const at::Tensor& logits);

}  // namespace valora
