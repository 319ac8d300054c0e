// The choices of a chat or a completion as they arrive, with the calls of tools taken out of their
// text. Subclasses write them to the client.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "server/handlers/answer.h"
#include "server/openai/requests.h"
#include "server/tools/call_parser.h"

namespace valora::server {

// More of a choice.
struct ChoicePart {
  OutputChunk chunk;  // its text has no calls in it
  std::vector<AnswerCallDelta> calls;
  bool called = false;  // the choice has calls, in this part or earlier ones
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
  // Bytes of the choice's text and of its calls' arguments.
  static size_t text_bytes(const ChoicePart& part);
  void begin_events();  // the head of a stream

  const AnswerOptions options_;
  const int n_;

 private:
  void on_classification(size_t part, Classification classification) final;
  void on_output(size_t part, OutputChunk chunk) final;
  void on_all_done() final;
  // What a task head answered with has log probabilities, too.
  void add_label(size_t part, OutputChunk& chunk) const;
  void echo_prompt(int choice, OutputChunk& chunk);
  // Moves the calls out of the chunk's text.
  void take_calls(int choice, ChoicePart& part);

  const size_t choice_count_;
  size_t unfinished_;  // choices
  struct Calls {
    std::unique_ptr<CallParser> parser;
    bool called = false;
  };
  std::vector<Calls> calls_;   // by choice; empty: the request has no tools
  bool calls_forced_ = false;  // the answer is calls and nothing else
  bool token_ids_as_text_;
  const int top_labels_;
  std::vector<std::optional<Classification>> classifications_;  // by prompt
  std::vector<Prompt> echoed_;                                  // by prompt; empty: no echo
  std::vector<AdapterUse> adapters_;                            // for the echo of token ids
  std::vector<bool> begun_;                                     // by choice; for the echo
};

// The answers of chats and completions, whole or streamed.
std::shared_ptr<Answer> make_generation_answer(std::shared_ptr<Service> service,
                                               std::shared_ptr<Exchange> exchange, AnswerHead head,
                                               const AnswerFormat& format,
                                               const GenerationBody& body);

}  // namespace valora::server
