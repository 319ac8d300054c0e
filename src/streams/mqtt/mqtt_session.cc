#include "streams/mqtt/mqtt_session.h"

#include <mosquitto.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace valora::streams {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kAtLeastOnce = 1, kKeepAliveSeconds = 30;
constexpr int kTurnMilliseconds = 500;  // a stop, and pings, are looked at
constexpr auto kAcceptLimit = 15s;      // for the broker to accept
constexpr auto kFarewell = 1s;
constexpr size_t kMostUnderWay = 20;  // the library's own bound

void init_mosquitto_once() {
  static const int done = mosquitto_lib_init();
  (void)done;
}

std::string fault_text(int code) {
  return code == MOSQ_ERR_ERRNO ? std::strerror(errno) : mosquitto_strerror(code);
}

// The message is at fault, not the connection.
bool never_publishable(int code) {
  return code == MOSQ_ERR_INVAL || code == MOSQ_ERR_PAYLOAD_SIZE ||
         code == MOSQ_ERR_MALFORMED_UTF8 || code == MOSQ_ERR_OVERSIZE_PACKET;
}

}  // namespace

MqttSession::MqttSession(const MqttBroker& broker, const std::string& client_id, MqttOutbox& outbox,
                         int wakes, std::function<void()> connected)
    : broker_(broker), outbox_(outbox), wakes_(wakes), told_connected_(std::move(connected)) {
  init_mosquitto_once();
  client_ = mosquitto_new(client_id.c_str(), true, this);
}

MqttSession::~MqttSession() {
  mosquitto_destroy(client_);
  std::vector<MqttMessage> lost;
  for (auto& [_, message] : under_way_) lost.push_back(std::move(message));
  outbox_.lost(std::move(lost));
}

void MqttSession::on_connect(mosquitto*, void* self, int code) {
  auto& session = *static_cast<MqttSession*>(self);
  if (code != 0) {
    session.refusal_ = mosquitto_connack_string(code);
    return;
  }
  session.connected_ = true;
  // A reader that sees "online" must not find the states of the server before this one.
  session.outbox_.connected(session.broker_.status_topic());
  session.told_connected_();
}

void MqttSession::on_publish(mosquitto*, void* self, int id) {
  auto& session = *static_cast<MqttSession*>(self);
  const auto found = session.under_way_.find(id);
  if (found == session.under_way_.end()) return;
  session.outbox_.taken(found->second);
  session.under_way_.erase(found);
}

std::string MqttSession::begin() {
  if (!client_) return "memory ran out";
  mosquitto_connect_callback_set(client_, on_connect);
  mosquitto_publish_callback_set(client_, on_publish);
  int code = MOSQ_ERR_SUCCESS;
  if (!broker_.user.empty())
    code = mosquitto_username_pw_set(client_, broker_.user.c_str(),
                                     broker_.password.empty() ? nullptr : broker_.password.c_str());
  if (code == MOSQ_ERR_SUCCESS && broker_.tls)
    code = broker_.ca_file.empty() ? mosquitto_int_option(client_, MOSQ_OPT_TLS_USE_OS_CERTS, 1)
                                   : mosquitto_tls_set(client_, broker_.ca_file.c_str(), nullptr,
                                                       nullptr, nullptr, nullptr);
  const std::string_view offline = "offline";
  if (code == MOSQ_ERR_SUCCESS)
    code = mosquitto_will_set(client_, broker_.status_topic().c_str(),
                              static_cast<int>(offline.size()), offline.data(), kAtLeastOnce, true);
  // The other form of this call waits for the host.
  if (code == MOSQ_ERR_SUCCESS)
    code = mosquitto_connect_async(client_, broker_.host.c_str(), broker_.port, kKeepAliveSeconds);
  return code == MOSQ_ERR_SUCCESS ? std::string() : fault_text(code);
}

// Waits until something happens, and lets the library work.
std::string MqttSession::step(int milliseconds) {
  const int socket = mosquitto_socket(client_);
  if (socket < 0) return refusal_.empty() ? "the broker closed the connection" : refusal_;
  const short wanted = mosquitto_want_write(client_) ? POLLIN | POLLOUT : POLLIN;  // NOLINT
  std::array<pollfd, 2> watched{pollfd{socket, wanted, 0}, pollfd{wakes_, POLLIN, 0}};
  ::poll(watched.data(), watched.size(), milliseconds);
  if (watched[1].revents & POLLIN) {
    uint64_t count = 0;
    [[maybe_unused]] const auto read = ::read(wakes_, &count, sizeof count);
  }
  const short happened = watched[0].revents;  // NOLINT
  int code = MOSQ_ERR_SUCCESS;
  // TLS may hold bytes that poll() does not see.
  if ((happened & (POLLIN | POLLERR | POLLHUP)) || (connected_ && broker_.tls))
    code = mosquitto_loop_read(client_, 1);
  if (code == MOSQ_ERR_SUCCESS && (happened & POLLOUT)) code = mosquitto_loop_write(client_, 1);
  if (code == MOSQ_ERR_SUCCESS) code = mosquitto_loop_misc(client_);
  if (code == MOSQ_ERR_SUCCESS) return {};
  return refusal_.empty() ? fault_text(code) : refusal_;
}

std::string MqttSession::hand_over() {
  while (under_way_.size() < kMostUnderWay) {
    auto message = outbox_.take();
    if (!message) return {};
    int id = 0;
    const int code = mosquitto_publish(client_, &id, message->topic.c_str(),
                                       static_cast<int>(message->payload.size()),
                                       message->payload.data(), kAtLeastOnce, message->retain);
    if (never_publishable(code)) {
      outbox_.refused();
      continue;
    }
    under_way_[code == MOSQ_ERR_SUCCESS ? id : 0] = std::move(*message);
    if (code != MOSQ_ERR_SUCCESS) return fault_text(code);
  }
  return {};
}

void MqttSession::leave() {
  const std::string_view offline = "offline";
  int last = 0;
  mosquitto_publish(client_, &last, broker_.status_topic().c_str(),
                    static_cast<int>(offline.size()), offline.data(), kAtLeastOnce, true);
  under_way_[last] = {.retain = true, .standing = true};
  const auto until = steady_clock::now() + kFarewell;
  while (!under_way_.empty() && steady_clock::now() < until && step(50).empty()) {
  }
  mosquitto_disconnect(client_);
  mosquitto_loop_write(client_, 1);
}

std::string MqttSession::run(const std::stop_token& stop) {
  if (std::string fault = begin(); !fault.empty()) return fault;
  const auto until = steady_clock::now() + kAcceptLimit;
  while (!stop.stop_requested()) {
    if (std::string fault = step(kTurnMilliseconds); !fault.empty()) return fault;
    if (!connected_ && steady_clock::now() > until) return "the broker does not answer";
    if (!connected_) continue;
    if (std::string fault = hand_over(); !fault.empty()) return fault;
  }
  if (connected_) leave();
  return {};
}

}  // namespace valora::streams
