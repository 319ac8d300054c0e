// Log probabilities of prompt tokens.
#include "base/threads/parts_done.h"
#include "engine/runner/runner.h"
#include "ops/device/parallel.h"

namespace valora {
namespace {

using scheduler::StepItem;

// Rows of logits in memory at a time while scoring a prompt: tens of MB for large vocabularies.
constexpr size_t kScoredRows = 64;

}  // namespace

// first: the step's row for the item's first token. Each row gives the probability of the token
// after its own.
void Runner::score_prompt(const StepItem& item, int64_t first) {
  const serving::Sequence& s = serving::sequence_of(item);
  serving::PromptLogprobs& scores = *s.owner->prompt_logprobs;
  const auto score = [&](const serving::ScoredRows& scored) {
    const at::Tensor logits = to_host(ranks_->logits(first, item.tokens, scored));
    const int64_t columns = logits.size(1);
    const auto vocab = static_cast<size_t>(s.owner->language->vocab);
    const float* data = logits.const_data_ptr<float>();
    const auto count = static_cast<int64_t>(scored.rows.size());
    ops::torch_parallel()(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int next = s.computed_tokens + static_cast<int>(scored.rows[i]) + 1;
        scores.set(next, s.tokens[next], {data + i * columns, vocab});
      }
    });
    ++parts_done();
  };
  serving::ScoredRows scored;
  for (int i = 0; i < item.tokens; ++i) {
    if (!scores.wants(s.computed_tokens + i + 1)) continue;
    scored.add(i, serving::uses_at(s, s.computed_tokens + i));
    if (scored.rows.size() < kScoredRows) continue;
    score(scored);
    scored = {};
  }
  if (!scored.rows.empty()) score(scored);
}

}  // namespace valora
