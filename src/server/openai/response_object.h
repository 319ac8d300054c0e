// Builds answers of OpenAI's Responses API, whole or as a stream of events.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/openai/json_text.h"
#include "server/openai/responses.h"

namespace valora::server {

// The items of one answer (its thought, a message and any number of calls, in order) and the events
// that report their growth.
class ResponseWriter {
 public:
  // repeated: the request's fields that the answer repeats.
  ResponseWriter(AnswerHead head, OrderedJson repeated);

  // Emits the events that precede the first part.
  void begin();
  void add(const std::string& thought, const std::string& text,
           const std::vector<AnswerCallDelta>& calls);
  // Emits the last events; `finish` is the choice's.
  void finish(const Finish& finish, const Usage& usage);
  // Emits an event for an answer that failed after it began.
  void fail(const OrderedJson& error);

  // Returns the events since the last call, as server-sent events.
  std::string take_events() { return std::exchange(events_, {}); }
  // The answer so far.
  OrderedJson object() const;

 private:
  enum class Kind : uint8_t { kMessage, kThought, kCall };
  struct Item {
    std::string id;
    Kind kind = Kind::kMessage;
    std::string text;  // of the message or thought, or the call's arguments
    std::string call_id, name;
    std::string status = "in_progress";
  };

  // The last item if it is of this kind, else a new one.
  Item& text_item(Kind kind);
  void add_text(Kind kind, const std::string& text);
  void open_call(const AnswerCallDelta& call);
  void close(size_t index, const char* status);
  void close_last();
  OrderedJson json_of(const Item& item) const;
  // Emits an event with its type, sequence number and fields.
  void event(const char* type, const OrderedJson& fields);
  OrderedJson place(const Item& item, bool with_content) const;

  AnswerHead head_;
  OrderedJson repeated_;
  std::vector<Item> items_;
  std::string status_ = "in_progress";
  std::optional<Usage> usage_;
  std::string events_;
  int sequence_ = 0;
};

}  // namespace valora::server
