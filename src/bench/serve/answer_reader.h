// Reads one answer, streamed or whole, into a record.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "bench/serve/record.h"
#include "bench/serve/sse_reader.h"

namespace valora::bench {

class AnswerReader {
 public:
  // The record outlives the reader.
  AnswerReader(RequestRecord& record, bool stream) : record_(record), stream_(stream) {}

  // Bytes of the body, in the order they come. status: of the response.
  void feed(std::string_view bytes, int status, double now);
  // The response is complete, or `failure` says why not.
  void finish(int status, const std::string& failure, double now);

 private:
  void on_event(std::string_view data, double now);
  void take_usage(const Json& answer);
  void fail(std::string error);

  RequestRecord& record_;
  const bool stream_;
  SseReader events_;
  std::string body_;       // of a whole answer or an error
  double last_piece_ = 0;  // when tokens came last
  bool done_ = false;      // the stream's end was read
};

}  // namespace valora::bench
