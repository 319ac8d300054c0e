#include "engine/runner/logit_rows.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace valora {
namespace {

at::Tensor pinned_floats(at::IntArrayRef sizes) {
  return at::empty(sizes, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
}

bool is_switched_off() {
  const char* const given = std::getenv("VALORA_GPU_SAMPLING");
  return given != nullptr && std::string_view(given) == "0";
}

// The logits to copy for a choice; undefined if its query is answered instead.
at::Tensor wanted_of(const at::Tensor& logits, const ChoiceRows& choice) {
  if (!choice.query || choice.missing.all) return logits.narrow(0, choice.first, choice.count);
  if (!choice.missing) return {};
  const int64_t begin = int64_t{choice.missing.part} * kernels::kPartTokens;
  return logits[choice.first].narrow(0, begin,
                                     std::min<int64_t>(kernels::kPartTokens, choice.vocab - begin));
}

// Starts the copies, all into one buffer.
void copy_requested(const at::Tensor& logits, std::span<ChoiceRows* const> choices) {
  int64_t floats = 0;
  for (const ChoiceRows* choice : choices)
    if (const at::Tensor wanted = wanted_of(logits, *choice); wanted.defined())
      floats += wanted.numel();
  if (floats == 0) return;
  const at::Tensor memory = pinned_floats({floats});
  int64_t place = 0;
  for (ChoiceRows* choice : choices) {
    const at::Tensor wanted = wanted_of(logits, *choice);
    if (!wanted.defined()) continue;
    choice->copied = memory.narrow(0, place, wanted.numel()).view(wanted.sizes());
    choice->copied.copy_(wanted, /*non_blocking=*/true);
    choice->part = choice->missing.part;
    place += wanted.numel();
  }
}

}  // namespace

LogitRows::LogitRows(at::Device device, ops::LaunchedWork& launched)
    : launched_(launched),
      candidates_(ops::LogitCandidates::serves(device) && !is_switched_off()
                      ? std::make_unique<ops::LogitCandidates>()
                      : nullptr) {}

void LogitRows::fetch(const at::Tensor& logits, std::span<ChoiceRows* const> choices) {
  const bool all = std::ranges::none_of(
      choices, [](const ChoiceRows* choice) { return choice->query.has_value(); });
  if (all) {
    const at::Tensor host = to_host(logits);
    for (ChoiceRows* choice : choices)
      choice->copied = host.narrow(0, choice->first, choice->count);
    return;
  }
  find(logits, choices);
  copy_requested(logits, choices);
  launched_.wait();
  size_t found = 0;
  for (ChoiceRows* choice : choices)
    if (choice->query && !choice->missing) choice->found = candidates_->found(found++);
}

void LogitRows::find(const at::Tensor& logits, std::span<ChoiceRows* const> choices) {
  std::vector<const kernels::CandidateQuery*> queries;
  for (ChoiceRows* choice : choices) {
    if (!choice->query || choice->missing) continue;
    choice->query->row = choice->first;
    queries.push_back(&*choice->query);
  }
  if (!queries.empty()) candidates_->find(logits, queries);
}

at::Tensor to_host(const at::Tensor& logits) {
  if (logits.is_cpu()) return logits.contiguous();
  return pinned_floats(logits.sizes()).copy_(logits);
}

}  // namespace valora
