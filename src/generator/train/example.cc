#include "generator/train/example.h"

#include <algorithm>

namespace valora::generator {
namespace {

// The token that closes the assistant's turn in the model's own format. A model may name several
// end tokens but be trained to stop at one of them; that is the last end token in a templated
// conversation, if any occurs.
Result<int32_t> end_of_answer(const serving::Frontend& frontend) {
  const std::vector<int32_t>& ends = frontend.generation().eos_token_ids;
  if (ends.empty())
    return unprocessable(
        "the model names no end token (eos_token_id): no answer could be trained to stop",
        "eos_token_id");
  ChatPrompt turns;
  turns.messages = {{"user", {std::string("a")}}, {"assistant", {std::string("a")}}};
  turns.add_generation_prompt = false;
  const auto tokens = frontend.tokenize(turns, /*add_special_tokens=*/false);
  if (!tokens.ok()) return ends.front();
  const auto last = std::find_first_of(tokens->rbegin(), tokens->rend(), ends.begin(), ends.end());
  return last == tokens->rend() ? ends.front() : *last;
}

Error at(const std::string& origin, Error error) {
  error.message = origin + ": " + error.message;
  return error;
}

}  // namespace

Result<ExampleMaker> ExampleMaker::open(const serving::Frontend& frontend, int axes,
                                        int64_t max_tokens) {
  VALORA_TRY(end, end_of_answer(frontend));
  return ExampleMaker(frontend, axes, max_tokens, end);
}

Result<Example> ExampleMaker::make(ExampleRequest request) const {
  auto prompt = request.prompt();
  if (!prompt.ok()) return at(request.origin, prompt.error());
  const Status checked = frontend_->check(*prompt);
  if (!checked.ok()) return at(request.origin, checked.error());
  auto prepared = frontend_->prepare(std::move(*prompt), /*add_generation_prompt=*/true, {});
  if (!prepared.ok()) return at(request.origin, prepared.error());

  Example example{std::move(request.origin), std::move(request.prompt),
                  std::move(prepared->tokens)};
  example.prompt_tokens = static_cast<int64_t>(example.tokens.size());
  if (request.answer) {
    const std::vector<int32_t> answer =
        frontend_->tokenizer()->encode(*request.answer, /*add_special_tokens=*/false);
    if (!answer.empty())
      if (const Status known = frontend_->check(Prompt(answer)); !known.ok())
        return at(example.origin, known.error());
    example.tokens.insert(example.tokens.end(), answer.begin(), answer.end());
    example.tokens.push_back(end_token_);
  }
  const auto tokens = static_cast<int64_t>(example.tokens.size());
  if (tokens > max_tokens_)
    return Error{ErrorCode::kPayloadTooLarge,
                 example.origin + ": " + std::to_string(tokens) +
                     " tokens with its answer, more than " + std::to_string(max_tokens_),
                 "max_tokens"};
  for (int a = 0; a < axes_; ++a)
    for (int64_t i = 0; i < tokens; ++i)
      example.positions.push_back(
          i < example.prompt_tokens
              ? prepared->positions.prompt[static_cast<size_t>(a * example.prompt_tokens + i)]
              : static_cast<int32_t>(i) + prepared->positions.delta);
  example.joint = prepared->joint;
  for (const models::VisualSpan& span : prepared->visual) {
    if (span.first_row == 0) example.visuals.push_back({{}, span.input->digest});
    example.visuals.back().spans.push_back({span.token_begin, span.rows});
  }
  example.weight = request.weight;
  example.head = std::move(request.head);
  example.labels = std::move(request.labels);
  return example;
}

}  // namespace valora::generator
