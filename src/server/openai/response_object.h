// Builds the answer of OpenAI's Responses API, whole and as the events of a stream.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/openai/json_text.h"
#include "server/openai/responses.h"

namespace valora::server {

// The items of one answer, a message and any number of calls in the order in which they come, and
// the events that tell how they grow.
class ResponseWriter {
 public:
  // repeated: the request's fields that the answer repeats.
  ResponseWriter(AnswerHead head, OrderedJson repeated);

  // Events before the first part.
  void begin();
  void add(const std::string& text, const std::vector<AnswerCallDelta>& calls);
  // The last events; `finish` as the choice's.
  void finish(const Finish& finish, const Usage& usage);
  // An event for an answer that failed after its beginning.
  void fail(const OrderedJson& error);

  // The events since the last time, as server-sent ones.
  std::string take_events() { return std::exchange(events_, {}); }
  // The answer as it stands.
  OrderedJson object() const;

 private:
  struct Item {
    std::string id;
    bool call = false;
    std::string text;  // of the message, or the arguments of the call
    std::string call_id, name;
    std::string status = "in_progress";
  };

  Item& message();
  void open_call(const AnswerCallDelta& call);
  void close(size_t index, const char* status);
  void close_last();
  OrderedJson json_of(const Item& item) const;
  // type, sequence number, and the fields.
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
