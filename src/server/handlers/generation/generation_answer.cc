#include "server/handlers/generation/generation_answer.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "server/openai/errors.h"
#include "server/openai/sse.h"

namespace valora::server {
namespace {

void write_ids(std::vector<TokenOutput>& tokens) {
  for (TokenOutput& token : tokens) {
    if (token.chosen.id < 0) continue;  // a label
    token.chosen.bytes = fmt::format("token_id:{}", token.chosen.id);
    for (TokenLogprob& other : token.top) other.bytes = fmt::format("token_id:{}", other.id);
  }
}

void write_ids(OutputChunk& chunk) {
  write_ids(chunk.tokens);
  if (!chunk.prompt) return;
  auto prompt = std::make_shared<std::vector<TokenOutput>>(*chunk.prompt);
  write_ids(*prompt);
  chunk.prompt = std::move(prompt);
}

}  // namespace

GenerationAnswer::GenerationAnswer(std::shared_ptr<Service> service,
                                   std::shared_ptr<Exchange> exchange, AnswerHead head,
                                   const GenerationBody& body)
    : Answer(std::move(service), std::move(exchange), std::move(head)),
      options_{body.logprobs, body.return_token_ids, body.prompt_logprobs, body.echo},
      n_(body.sampling.n),
      choice_count_(body.prompts.size() * body.sampling.n),
      unfinished_(choice_count_),
      token_ids_as_text_(body.token_ids_as_text),
      shows_thoughts_(body.thinking.shown),
      top_labels_(body.sampling.logprobs.value_or(0)),
      classifications_(body.prompts.size()),
      begun_(choice_count_) {
  if (body.echo) {
    echoed_ = body.prompts;
    adapters_ = service_->adapters_of(body.target);
  }
  if (body.tools.choice == ToolChoice::kNone) return;
  calls_forced_ = body.tools.choice == ToolChoice::kRequired;
  const ToolCallStyle style = answer_style(service_->tool_call_style(), body.tools);
  for (size_t i = 0; i < choice_count_; ++i)
    calls_.push_back({make_call_parser(style, body.tools)});
}

void GenerationAnswer::on_output(size_t part, OutputChunk chunk) {
  if (chunk.finish) --unfinished_;
  const int choice = static_cast<int>(part) * n_ + chunk.index;
  if (options_.logprobs) add_label(part, chunk);
  if (token_ids_as_text_) write_ids(chunk);
  if (!shows_thoughts_) chunk.thought.clear();
  if (!echoed_.empty()) echo_prompt(choice, chunk);
  ChoicePart out{std::move(chunk), {}};
  if (!calls_.empty()) take_calls(choice, out);
  on_part(choice, std::move(out));
}

void GenerationAnswer::on_classification(size_t part, Classification classification) {
  classifications_[part] = std::move(classification);
}

// Numbers and lists of labels get no label token.
void GenerationAnswer::add_label(size_t part, OutputChunk& chunk) const {
  const auto& known = classifications_[part];
  if (!known || !chunk.tokens.empty()) return;
  const std::string& label = known->labels[known->best];
  const bool as_json = chunk.text == to_text({{"label", label}});
  if (chunk.text == label || as_json) chunk.tokens.push_back(label_token(*known, top_labels_));
}

// Must run before the choice's first text.
void GenerationAnswer::echo_prompt(int choice, OutputChunk& chunk) {
  if (begun_[choice]) return;
  begun_[choice] = true;
  const Prompt& prompt = echoed_[choice / n_];
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    chunk.text.insert(0, *text);
  } else if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    const auto text_of_ids = service_->engine.detokenize(*ids, adapters_);
    if (text_of_ids.ok()) chunk.text.insert(0, *text_of_ids);
  }
}

void GenerationAnswer::take_calls(int choice, ChoicePart& part) {
  Calls& calls = calls_[choice];
  AnswerDelta delta = calls.parser->feed(part.chunk.text);
  if (part.chunk.finish) {
    AnswerDelta last = calls.parser->finish();
    delta.content += last.content;
    std::move(last.calls.begin(), last.calls.end(), std::back_inserter(delta.calls));
  }
  // A forced call that is cut off may begin like ordinary text.
  part.chunk.text = calls_forced_ ? std::string() : std::move(delta.content);
  for (CallDelta& call : delta.calls) {
    std::string id = call.name ? fmt::format("call-{}-{}-{}", head_.id, choice, call.index) : "";
    part.calls.push_back(
        {call.index, std::move(id), std::move(call.name), std::move(call.arguments)});
  }
  calls.called = calls.called || !part.calls.empty();
  part.called = calls.called;
}

size_t GenerationAnswer::text_bytes(const ChoicePart& part) {
  size_t bytes = part.chunk.text.size() + part.chunk.thought.size();
  for (const AnswerCallDelta& call : part.calls) bytes += call.arguments.size();
  return bytes;
}

void GenerationAnswer::begin_events() { exchange_->begin_stream(event_stream()); }

// Otherwise a choice that the engine left out would look like an empty answer.
void GenerationAnswer::on_all_done() {
  if (unfinished_ == 0) return on_all_finished();
  fail(internal("the engine ended the request before all of its choices"));
}

namespace {

// Bytes that a token occupies until the answer is sent, both as a value and as JSON.
size_t kept_bytes(const TokenOutput& token) {
  constexpr size_t kJsonBytes = 400;  // one token with its log probability
  size_t bytes = sizeof(TokenOutput) + kJsonBytes + token.chosen.bytes.size();
  for (const TokenLogprob& other : token.top)
    bytes += sizeof(TokenLogprob) + kJsonBytes + other.bytes.size();
  return bytes;
}

class WholeAnswer final : public GenerationAnswer {
 public:
  WholeAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange, AnswerHead head,
              const AnswerFormat& format, const GenerationBody& body)
      : GenerationAnswer(std::move(service), std::move(exchange), std::move(head), body),
        format_(format),
        choices_(choice_count()),
        calls_(choice_count()),
        ids_counted_(choice_count()) {}

 private:
  void on_part(int index, ChoicePart part) override {
    Choice& choice = choices_[index];
    OutputChunk& chunk = part.chunk;
    if (!keep(bytes_of(index, part))) return;
    choice.text += chunk.text;
    choice.thought += chunk.thought;
    for (AnswerCallDelta& call : part.calls) {
      if (call.name) calls_[index].push_back({std::move(call.id), std::move(*call.name), {}});
      calls_[index].back().arguments += call.arguments;
    }
    if (keeps_tokens())
      std::move(chunk.tokens.begin(), chunk.tokens.end(), std::back_inserter(choice.tokens));
    if (chunk.prompt) choice.prompt = std::move(chunk.prompt);
    if (chunk.finish) choice.finish = *chunk.finish;
  }

  bool keeps_tokens() const { return options_.logprobs || options_.token_ids; }

  size_t bytes_of(int index, const ChoicePart& part) {
    constexpr size_t kIdBytes = 32;  // one token id in JSON
    size_t bytes = text_bytes(part);
    if (options_.token_ids && !ids_counted_[index])
      bytes += kIdBytes * prompt_token_ids(index / n_).size();
    ids_counted_[index] = true;
    if (part.chunk.prompt)
      for (const TokenOutput& token : *part.chunk.prompt) bytes += kept_bytes(token);
    if (keeps_tokens())
      for (const TokenOutput& token : part.chunk.tokens) bytes += kept_bytes(token);
    return bytes;
  }

  void on_all_finished() override {
    OrderedJson answer = answer_head(head_, format_.object());
    OrderedJson& choices = answer["choices"] = OrderedJson::array();
    for (size_t i = 0; i < choices_.size(); ++i) {
      choices.push_back(format_.choice(static_cast<int>(i), choices_[i], options_));
      set_tool_calls(choices.back(), calls_[i]);
      if (format_.prompt_in_choices()) add_prompt(choices.back(), i);
    }
    if (!format_.prompt_in_choices()) add_prompt(answer, 0);
    answer["usage"] = usage_json(usage());
    exchange_->respond({.body = to_text(answer)});
  }

  // Adds the fields about the choice's prompt that the client asked for.
  void add_prompt(OrderedJson& out, size_t choice) const {
    if (options_.token_ids) out["prompt_token_ids"] = prompt_token_ids(choice / n_);
    const auto& prompt = choices_[choice].prompt;
    if (options_.prompt_logprobs && prompt) out["prompt_logprobs"] = prompt_logprobs(*prompt);
  }

  const AnswerFormat& format_;
  std::vector<Choice> choices_;
  std::vector<std::vector<AnswerCall>> calls_;  // by choice
  std::vector<bool> ids_counted_;               // true once the choice's prompt ids are counted
};

class StreamedAnswer final : public GenerationAnswer {
 public:
  StreamedAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
                 AnswerHead head, const AnswerFormat& format, const GenerationBody& body)
      : GenerationAnswer(std::move(service), std::move(exchange), std::move(head), body),
        format_(format),
        include_usage_(body.include_usage),
        continuous_usage_(body.continuous_usage),
        choices_(choice_count()) {}

 private:
  struct ChoiceState {
    bool begun = false;
    size_t characters = 0;
  };

  void on_part(int index, ChoicePart part) override {
    const OutputChunk& chunk = part.chunk;
    if (chunk.text.empty() && chunk.thought.empty() && part.calls.empty() && !shows_tokens(chunk) &&
        !chunk.finish)
      return;
    ChoiceState& state = choices_[index];
    const bool first = !std::exchange(state.begun, true);
    OrderedJson event = answer_head(head_, format_.chunk_object());
    event["choices"] =
        OrderedJson::array({format_.chunk(index, chunk, first, state.characters, options_)});
    add_tool_calls(event["choices"][0], part.calls, part.called);
    if (options_.token_ids && first) add_prompt_ids(event, index);
    if (continuous_usage_) event["usage"] = usage_json(usage());
    if (options_.logprobs) state.characters += characters(chunk.tokens);
    if (options_.logprobs && options_.echo && chunk.prompt)
      state.characters += characters(*chunk.prompt);
    send(to_text(event));
  }

  // Completions get the ids in the first event of each choice, chats in the very first event.
  void add_prompt_ids(OrderedJson& event, int index) const {
    if (format_.prompt_in_choices())
      event["choices"][0]["prompt_token_ids"] = prompt_token_ids(index / n_);
    else if (!begun_)
      event["prompt_token_ids"] = prompt_token_ids(0);
  }

  // A chunk without text is still sent if the client asked for its tokens. Without tools, every
  // chunk is sent, so that events keep the pace of the tokens.
  bool shows_tokens(const OutputChunk& chunk) const {
    return !chunk.tokens.empty() && (options_.logprobs || options_.token_ids || !has_tools());
  }

  void on_all_finished() override {
    if (include_usage_) {
      OrderedJson event = answer_head(head_, format_.chunk_object());
      event["choices"] = OrderedJson::array();
      event["usage"] = usage_json(usage());
      send(to_text(event));
    }
    end();
  }

  // The HTTP status is not sent before the first token, so it can still report the error.
  void on_failed(const Error& error) override {
    if (!begun_) return Answer::on_failed(error);
    send(error_json(error));
    end();
  }

  void send(const std::string& json) {
    if (!std::exchange(begun_, true)) begin_events();
    exchange_->write(sse_event(json));
  }

  void end() {
    exchange_->write(std::string(kSseDone));
    exchange_->end_stream();
  }

  const AnswerFormat& format_;
  const bool include_usage_;
  const bool continuous_usage_;
  std::vector<ChoiceState> choices_;
  bool begun_ = false;
};

}  // namespace

std::shared_ptr<Answer> make_generation_answer(std::shared_ptr<Service> service,
                                               std::shared_ptr<Exchange> exchange, AnswerHead head,
                                               const AnswerFormat& format,
                                               const GenerationBody& body) {
  if (body.stream)
    return std::make_shared<StreamedAnswer>(std::move(service), std::move(exchange),
                                            std::move(head), format, body);
  return std::make_shared<WholeAnswer>(std::move(service), std::move(exchange), std::move(head),
                                       format, body);
}

}  // namespace valora::server
