// The counters and measurements of an Answer.
#include <algorithm>
#include <utility>

#include "server/handlers/generation/answer.h"

namespace valora::server {

// Most tokens that the requests may generate; without "max_tokens", as many as the model allows.
int64_t Answer::most_tokens(const std::vector<GenerateRequest>& requests) const {
  int64_t tokens = 0;
  for (const GenerateRequest& request : requests)
    if (request.task == Task::kGenerate)
      tokens += int64_t{request.sampling.n} *
                request.sampling.max_tokens.value_or(service_->engine.model().max_model_len);
  return tokens;
}

void Answer::measure(Part& part, const OutputChunk& chunk, Time at) {
  Metrics& metrics = service_->metrics;
  if (chunk.finish) metrics.choice_finished(chunk.finish->reason);
  if (chunk.tokens.empty()) return;
  metrics.generation_tokens(static_cast<int>(chunk.tokens.size()));
  if (!std::exchange(part.first_token_seen, true))
    metrics.time_to_first_token(std::chrono::duration<double>(at - arrived_).count());
  std::optional<Time>& last = part.last_token[chunk.index];
  if (last) metrics.inter_token_latency(std::chrono::duration<double>(at - *last).count());
  last = at;
}

AnswerLatency Answer::latency() const {
  AnswerLatency longest;
  for (const Part& part : parts_) {
    const RequestTimings& timings = part.info.timings;
    const int tokens = *std::max_element(part.generated.begin(), part.generated.end());
    longest.ttft = std::max(longest.ttft, timings.ttft_seconds);
    longest.e2e = std::max(longest.e2e, timings.e2e_seconds);
    if (tokens > 1) longest.tpot = std::max(longest.tpot, timings.decode_seconds / (tokens - 1));
  }
  return longest;
}

Usage Answer::usage() const {
  Usage sum;
  for (const Part& part : parts_) {
    sum.prompt_tokens += part.usage.prompt_tokens;
    sum.completion_tokens += part.usage.completion_tokens;
    sum.cached_tokens += part.usage.cached_tokens;
    sum.thought_tokens += part.usage.thought_tokens;
  }
  return sum;
}

}  // namespace valora::server
