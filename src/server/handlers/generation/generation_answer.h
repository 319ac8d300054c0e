// Collects the choices of a chat or completion as they arrive and separates tool calls from their
// text. Subclasses write them to the client.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "server/handlers/generation/answer.h"
#include "server/openai/requests.h"
#include "server/tools/call_parser.h"

namespace valora::server {

// An increment of a choice.
struct ChoicePart {
  OutputChunk chunk;  // text without the tool calls; no thought unless it is shown
  std::vector<AnswerCallDelta> calls;
  bool called = false;  // this or an earlier part of the choice contains calls
};

// Choices are numbered across all prompts: sequence i of prompt p is choice p * n + i.
class GenerationAnswer : public Answer {
 protected:
  GenerationAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
                   AnswerHead head, const GenerationBody& body);

  virtual void on_part(int choice, ChoicePart part) = 0;
  virtual void on_all_finished() = 0;

  size_t choice_count() const { return choice_count_; }
  bool has_tools() const { return !calls_.empty(); }
  // Bytes of the choice's text, thought and calls' arguments.
  static size_t text_bytes(const ChoicePart& part);
  void begin_events();  // sends the head of the stream

  const AnswerOptions options_;
  const int n_;

 private:
  void on_classification(size_t part, Classification classification) final;
  void on_output(size_t part, OutputChunk chunk) final;
  void on_all_done() final;
  // Adds the label that a task head chose as a token, so that it has log probabilities too.
  void add_label(size_t part, OutputChunk& chunk) const;
  void echo_prompt(int choice, OutputChunk& chunk);
  // Moves tool calls out of the chunk's text.
  void take_calls(int choice, ChoicePart& part);

  const size_t choice_count_;
  size_t unfinished_;  // choices
  struct Calls {
    std::unique_ptr<CallParser> parser;
    bool called = false;
  };
  std::vector<Calls> calls_;   // by choice; empty: the request has no tools
  bool calls_forced_ = false;  // the answer must consist of calls only
  bool token_ids_as_text_;
  bool shows_thoughts_;
  const int top_labels_;
  std::vector<std::optional<Classification>> classifications_;  // by prompt
  std::vector<Prompt> echoed_;                                  // by prompt; empty: no echo
  std::vector<AdapterUse> adapters_;                            // needed to echo token ids
  std::vector<bool> begun_;                                     // by choice; needed for the echo
};

// Creates the answer of a chat or completion, whole or streamed.
std::shared_ptr<Answer> make_generation_answer(std::shared_ptr<Service> service,
                                               std::shared_ptr<Exchange> exchange, AnswerHead head,
                                               const AnswerFormat& format,
                                               const GenerationBody& body);

}  // namespace valora::server
