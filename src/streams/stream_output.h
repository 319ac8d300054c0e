// Takes what all streams tell, besides each one's log and webhook.
#pragma once

#include <string>

#include "base/json/json.h"
#include "streams/event_log.h"

namespace valora::streams {

class Stream;

// Of streams whose specs want it (StreamSpec::mqtt). Called on the streams' threads: no function
// may wait, nor change the stream.
class StreamOutput {
 public:
  StreamOutput() = default;
  virtual ~StreamOutput() = default;
  StreamOutput(const StreamOutput&) = delete;
  StreamOutput& operator=(const StreamOutput&) = delete;

  // Before the stream begins, and after it was deleted, not merely ended.
  virtual void added(const Stream& stream) = 0;
  virtual void removed(const std::string& id) = 0;
  // Its state is another.
  virtual void changed(const Stream& stream) = 0;
  // fields: the event's, without its id and type.
  virtual void told(const Stream& stream, const Event& event, const OrderedJson& fields) = 0;
};

}  // namespace valora::streams
