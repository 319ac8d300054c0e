// Puts what streams tell into the outbox, as topics. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "streams/mqtt/mqtt_broker.h"
#include "streams/mqtt/mqtt_outbox.h"
#include "streams/mqtt/mqtt_topics.h"
#include "streams/stream_output.h"

namespace valora::streams {

class MqttPublisher final : public StreamOutput {
 public:
  // `outbox` must outlive this object.
  MqttPublisher(MqttBroker broker, MqttOutbox& outbox)
      : broker_(std::move(broker)), outbox_(outbox) {}

  void added(const Stream& stream) override;
  void removed(const std::string& id) override;
  void changed(const Stream& stream) override;
  void told(const Stream& stream, const Event& event, const OrderedJson& fields) override;

  // PREFIX/streams/NAME, or …/ID if it has no name, or another stream's; empty: it publishes
  // nothing.
  std::string topic_of(const std::string& id) const;

 private:
  struct Published {
    StreamTopics topics;
    std::vector<RetainedText> discovery;
  };

  void tell_answers(const StreamTopics& topics, const Stream& stream, const OrderedJson& fields);
  // The topic of the snapshot to be sent, if one is.
  std::string tell_edge(const StreamTopics& topics, const Stream& stream, bool begins,
                        const OrderedJson& fields);
  void send_snapshot(const std::string& topic, const Stream& stream, int64_t id);

  const MqttBroker broker_;
  MqttOutbox& outbox_;
  mutable std::mutex mutex_;  // also orders a stream's states
  std::map<std::string, Published> streams_;
  std::set<std::string> bases_;  // of all streams_
};

}  // namespace valora::streams
