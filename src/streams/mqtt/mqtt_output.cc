#include "streams/mqtt/mqtt_output.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace valora::streams {
namespace {

// If none can be made, the connection looks for messages in turns.
int new_eventfd() { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

}  // namespace

MqttOutput::MqttOutput(MqttBroker broker)
    : wakes_(new_eventfd()),
      outbox_([wakes = wakes_] {
        const uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(wakes, &one, sizeof one);
      }),
      publisher_(broker, outbox_),
      broker_(std::move(broker)) {}

void MqttOutput::connect() {
  connection_ = std::make_unique<MqttConnection>(broker_, outbox_, wakes_);
}

MqttOutput::~MqttOutput() {
  connection_.reset();
  if (wakes_ >= 0) ::close(wakes_);
}

}  // namespace valora::streams
