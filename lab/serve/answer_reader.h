// Reads one answer, streamed or not, into a RequestRecord.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"
#include "lab/serve/record.h"
#include "lab/serve/sse_reader.h"

namespace valora::bench {

class AnswerReader {
 public:
  // The record must outlive the reader.
  AnswerReader(RequestRecord& record, bool stream) : record_(record), stream_(stream) {}

  // Adds bytes of the body. `status`: HTTP status of the response. `now`: seconds since the run
  // began.
  void feed(std::string_view bytes, int status, double now);
  // Call at the end of the response. `failure`: why it is incomplete; empty if complete.
  void finish(int status, const std::string& failure, double now);

 private:
  void on_event(std::string_view data, double now);
  void take_usage(const Json& answer);
  void fail(std::string error);

  RequestRecord& record_;
  const bool stream_;
  SseReader events_;
  std::string body_;       // of an unstreamed answer or an error
  double last_piece_ = 0;  // time of the last chunk with tokens
  bool done_ = false;      // the stream was read to its end
};

}  // namespace valora::bench
