// The runner's logits: of sampled tokens, and of prompts that are scored.
#include <algorithm>

#include "base/parts_done.h"
#include "engine/adapter_tensors.h"
#include "engine/runner.h"
#include "ops/parallel.h"

namespace valora {
namespace {

using scheduler::StepItem;

// Rows of logits that are held at a time while a prompt is scored: tens of MB with large
// vocabularies.
constexpr int64_t kScoredRows = 64;

at::Tensor long_tensor(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

}  // namespace

void Runner::add_heads(std::span<const serving::AppliedAdapter> uses, int64_t begin, int64_t end,
                       models::HeadAdaptation& heads) const {
  for (const serving::AppliedAdapter& use : uses) {
    const ops::AdapterWeights& weights = weights_of(*use.adapter);
    if (use.scale == 0 || head_module_ < 0) continue;
    if (weights.touches(head_module_)) heads.lora.add(begin, end, weights, use.scale);
    if (weights.output(head_module_)) heads.lora.add_outputs(begin, end, weights, use.scale);
    const ops::VocabularyWeights& vocabulary = vocabulary_of(*use.adapter);
    if (!vocabulary.on_head()) continue;
    if (!heads.vocabulary.empty() && heads.vocabulary.back().weights == &vocabulary &&
        heads.vocabulary.back().end == begin)
      heads.vocabulary.back().end = end;
    else
      heads.vocabulary.push_back({begin, end, &vocabulary, use.scale});
  }
}

// In host memory: float [rows, vocab].
at::Tensor Runner::logits_of(const at::Tensor& hidden, const std::vector<int64_t>& rows,
                             const models::HeadAdaptation& heads) const {
  const auto count = static_cast<int64_t>(rows.size());
  const bool all = count == hidden.size(0);  // in order, each once
  const at::Tensor logits =
      model_.logits(all ? hidden : hidden.index_select(0, long_tensor(rows, device_)), heads);
  if (logits.is_cpu()) return logits.contiguous();
  at::Tensor host =
      at::empty(logits.sizes(), at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
  return host.copy_(logits);
}

// hidden: [tokens of the item, hidden size]. Each row tells how likely the next token was.
void Runner::score_prompt(const StepItem& item, const at::Tensor& hidden) {
  const serving::Sequence& s = sequence_of(item);
  serving::PromptLogprobs& scores = *s.owner->prompt_logprobs;
  std::vector<int64_t> wanted;
  for (int i = 0; i < item.tokens; ++i)
    if (scores.wants(s.computed_tokens + i + 1)) wanted.push_back(i);
  for (size_t first = 0; first < wanted.size(); first += kScoredRows) {
    const std::vector<int64_t> rows(
        wanted.begin() + static_cast<int64_t>(first),
        wanted.begin() + static_cast<int64_t>(std::min(first + kScoredRows, wanted.size())));
    models::HeadAdaptation heads;
    add_heads(s.owner->adapters, 0, static_cast<int64_t>(rows.size()), heads);
    const at::Tensor logits = logits_of(hidden, rows, heads);
    const int64_t vocab = logits.size(1);
    const float* data = logits.const_data_ptr<float>();
    ops::torch_parallel()(0, static_cast<int64_t>(rows.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int next = s.computed_tokens + static_cast<int>(rows[i]) + 1;
        scores.set(next, s.tokens[next], {data + i * vocab, static_cast<size_t>(vocab)});
      }
    });
    ++parts_done();
  }
}

}  // namespace valora
