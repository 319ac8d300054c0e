// Turns sampled tokens and head logits into calls of a request's sink.
#include <algorithm>

#include "base/fault.h"
#include "serving/loop/core.h"
#include "serving/output/task_head.h"

namespace valora::serving {
namespace {

using scheduler::StepOutput;

TokenLogprob describe(const text::Tokenizer& tokenizer, int32_t id, float logprob) {
  return {id, tokenizer.token_bytes(id), logprob};
}

TokenOutput describe(const text::Tokenizer& tokenizer, const SampledToken& token) {
  TokenOutput output{describe(tokenizer, token.id, token.logprob), {}};
  for (const RankedToken& other : token.top)
    output.top.push_back(describe(tokenizer, other.id, other.logprob));
  return output;
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

RequestTimings timings_of(const ActiveRequest& request, TimePoint now) {
  const auto since = [](TimePoint from, TimePoint to) { return std::max(0.0, seconds(to - from)); };
  RequestTimings t;
  t.queue_seconds = since(request.arrival, request.first_scheduled);
  t.adapter_seconds = seconds(request.adapter_wait);
  t.kv_seconds = seconds(request.kv_wait);
  t.prefill_seconds = since(request.first_scheduled, request.first_token);
  t.decode_seconds = since(request.first_token, now);
  t.ttft_seconds = since(request.arrival, request.first_token);
  t.e2e_seconds = since(request.arrival, now);
  return t;
}

}  // namespace

// A failure for one output, such as a failed allocation, ends only its own request.
void EngineCore::on_output(StepOutput& output) {
  ActiveRequest& request = *static_cast<Sequence&>(*output.request).owner;
  const auto alive = request.shared_from_this();
  try {
    answer(output);
  } catch (const std::exception& e) {
    fail(request, fault("the request could not be answered", e));
  }
}

void EngineCore::answer(StepOutput& output) {
  auto& sequence = static_cast<Sequence&>(*output.request);
  ActiveRequest& request = *sequence.owner;
  if (request.cancelled) return;
  if (request.first_token == TimePoint{}) request.first_token = clock_.now();
  sequence.tolerance = from_seconds(request.request.tpot_target.value_or(0));
  if (request.generates()) {
    for (const SampledToken& token : output.tokens) {
      if (sequence.state == scheduler::RequestState::kFinished) break;  // ignore the rest
      handle_token(sequence, token);
    }
    return;
  }
  if (request.head) {
    auto probs = runner_.probabilities(request.head->problem_type, output.values);
    if (!probs.ok()) return fail(request, probs.error());
    return handle_classification(
        sequence,
        classification_of(*request.head, std::move(output.values), std::move(probs).value()));
  }
  request.sink->on_embedding(std::move(output.values));
  end_sequence(sequence);
}

void EngineCore::handle_token(Sequence& sequence, const SampledToken& token) {
  ActiveRequest& request = *sequence.owner;
  const SamplingParams& params = request.request.sampling;
  OutputChunk chunk;
  chunk.index = sequence.index;
  if (sequence.generated_tokens() == 0 && request.prompt_logprobs) {
    auto prompt =
        request.prompt_logprobs->outputs(sequence.prompt->tokens, *request.language->tokenizer);
    if (!prompt.ok()) return fail(request, prompt.error());
    chunk.prompt = std::move(prompt).value();
  }
  if (sequence.max_tokens == 0) {
    chunk.finish = Finish{FinishReason::kLength, {}};
    request.sink->on_output(std::move(chunk));
    return end_sequence(sequence);
  }
  sequence.tokens.push_back(token.id);
  ++request.usage.completion_tokens;
  const int generated = sequence.generated_tokens();
  const bool scan = generated >= params.min_tokens;
  chunk.tokens.push_back(describe(*request.language->tokenizer, token));
  const bool in_thought = sequence.output.in_thought();
  if (sequence.ends_with(token.id)) {
    chunk.finish = Finish{FinishReason::kStop, {}};
    if (!in_thought && contains(params.stop_token_ids, token.id))
      chunk.finish->stop_reason = token.id;
  } else {
    OutputText::Piece piece = sequence.output.push(token.id, scan);
    chunk.text = std::move(piece.text);
    chunk.thought = std::move(piece.thought);
    chunk.thought_tokens = piece.thought_tokens;
    if (piece.stop)
      chunk.finish = Finish{FinishReason::kStop, *piece.stop};
    else if (token.last)
      chunk.finish = Finish{FinishReason::kStop, {}};
    else if (generated >= sequence.max_tokens ||
             static_cast<int>(sequence.tokens.size()) >= config_.max_model_len)
      chunk.finish = Finish{FinishReason::kLength, {}};
  }
  if (chunk.finish && !std::holds_alternative<std::string>(chunk.finish->stop_reason)) {
    OutputText::Piece rest = sequence.output.finish(scan);
    chunk.thought += rest.thought;
    chunk.thought_tokens += rest.thought_tokens;
    chunk.text += rest.text;
    if (rest.stop) chunk.finish = Finish{FinishReason::kStop, *rest.stop};
  }
  request.usage.thought_tokens += chunk.thought_tokens;
  const bool last = chunk.finish.has_value();
  if (sequence.shape) {
    if (!in_thought) sequence.unshaped_logprob += token.logprob;
    if (!chunk.text.empty())
      chunk.text = sequence.shape->push(chunk.text, std::exchange(sequence.unshaped_logprob, 0));
    if (last) chunk.text += sequence.shape->finish();
  }
  request.sink->on_output(std::move(chunk));
  if (last) end_sequence(sequence);
}

void EngineCore::handle_classification(Sequence& sequence, Classification result) {
  ActiveRequest& request = *sequence.owner;
  if (request.request.task == Task::kGenerate) {
    // The label does not depend on sampling, so all n choices get the same one.
    const bool json = request.request.constraint.has_value();
    const std::string label =
        json ? label_answer(*request.head, result, request.request.constraint->output.confidence)
             : label_text(*request.head, result);
    request.sink->on_classification(std::move(result));
    for (int i = 0; i < request.request.sampling.n; ++i)
      request.sink->on_output({i, label, {}, Finish{FinishReason::kStop, {}}});
  } else {
    request.sink->on_classification(std::move(result));
  }
  end_sequence(sequence);
}

void EngineCore::end_sequence(Sequence& sequence) {
  ActiveRequest& request = *sequence.owner;
  request.preemptions += sequence.preemptions;
  queues_changed_ = true;
  scheduler_.finish(sequence);
  if (--request.open_sequences > 0) return;
  const auto keep = request.shared_from_this();
  FinalInfo info{request.usage, timings_of(request, clock_.now()), request.preemptions,
                 sequence.prompt->tokens};
  release(request);
  request.sink->on_done(info);
}

}  // namespace valora::serving
