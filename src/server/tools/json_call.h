// Reports one call written as JSON as soon as it is certain to be a call.
#pragma once

#include <string_view>

#include "server/tools/call_reader.h"
#include "server/tools/call_sink.h"

namespace valora::server {

class JsonCall {
 public:
  enum class Progress { kReading, kDone, kFailed };

  // Consumes characters, starting with "{", up to the one that decides, and returns how many.
  size_t feed(std::string_view text, CallSink& sink) {
    size_t taken = 0;
    while (taken < text.size() && progress() == Progress::kReading) {
      taken += reader_.feed(text.substr(taken, 1));
      report(sink);
    }
    return taken;
  }

  Progress progress() const {
    if (reader_.failed() || (reported_ && !known_) || (reader_.done() && !reported_))
      return Progress::kFailed;
    return reader_.done() ? Progress::kDone : Progress::kReading;
  }
  bool reported() const { return reported_ && known_; }  // to the sink; then it is no content
  const std::string& text() const { return reader_.text(); }

 private:
  void report(CallSink& sink) {
    if (!reported_ && reader_.name() && (reader_.has_arguments() || reader_.done())) {
      known_ = sink.knows(*reader_.name());
      reported_ = true;
      if (known_) sink.begin_call(*reader_.name());
    }
    if (!reported()) return;
    sink.arguments(reader_.take_arguments());
    if (reader_.done() && !reader_.has_arguments()) sink.arguments("{}");
  }

  CallReader reader_;
  bool reported_ = false, known_ = false;
};

}  // namespace valora::server
