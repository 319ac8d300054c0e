#include "engine/sequence.h"

#include <algorithm>

namespace valora {
namespace {

// Each sequence of a request has its own random stream.
SamplingSettings seeded(SamplingSettings settings, int index) {
  settings.seed += static_cast<uint64_t>(index);
  return settings;
}

}  // namespace

Sequence::Sequence(std::shared_ptr<ActiveRequest> owner_, int index_,
                   std::shared_ptr<const PreparedPrompt> prompt_,
                   const std::shared_ptr<const text::Tokenizer>& tokenizer, int max_tokens_)
    : owner(std::move(owner_)),
      index(index_),
      prompt(std::move(prompt_)),
      sampler(seeded(owner->sampling, index), prompt->tokens),
      output(tokenizer, owner->request.sampling.skip_special_tokens, owner->stop_strings,
             owner->request.sampling.include_stop_str_in_output),
      max_tokens(max_tokens_) {
  arrival = owner->arrival;
  adapter = owner->adapters.empty() ? scheduler::kBaseModel : owner->adapters.front().adapter->id;
  const auto merging = std::find_if(
      owner->adapters.begin(), owner->adapters.end(),
      [](const AppliedAdapter& use) { return use.adapter->mergeable() && use.scale != 0; });
  if (merging != owner->adapters.end()) {
    merge = merging->adapter->id;
    merge_need = merging->adapter->need;
  }
  for (const AppliedAdapter& use : owner->adapters)
    if (use.adapter->on_decoder)
      decoder_adapters.push_back({use.adapter->id, use.adapter->rank, use.scale});
  tokens = prompt->tokens;
  prompt_tokens = static_cast<int>(tokens.size());
  identity = prompt->identity;
  identity.adapter = salted(identity.adapter, owner->request.cache_salt);
  priority = owner->request.priority;
  if (const auto target = owner->request.ttft_target) {
    tolerance = from_seconds(*target);
    deadline = arrival + tolerance;
  }
}

}  // namespace valora
