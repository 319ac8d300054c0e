#include "streams/mqtt/mqtt_outbox.h"

#include <ranges>
#include <utility>

namespace valora::streams {

void MqttOutbox::put(const std::string& topic, std::string payload) {
  const auto [found, is_new] = standing_.try_emplace(topic);
  Standing& entry = found->second;
  if (!is_new && entry.payload == payload) return;
  if (!is_new && entry.payload.empty()) --cleared_;
  if (payload.empty() && ++cleared_ > kMostCleared) {
    --cleared_;
    ++dropped_;
    standing_.erase(found);
    return;
  }
  entry.payload = std::move(payload);
  if (!entry.waits) waiting_topics_.push_back(topic);
  entry.waits = true;
}

void MqttOutbox::keep(const std::string& topic, std::string payload) {
  {
    const std::lock_guard lock(mutex_);
    put(topic, std::move(payload));
  }
  wake_();
}

void MqttOutbox::clear(const std::string& topic) { keep(topic, {}); }

void MqttOutbox::send(std::string topic, std::string payload, bool retain) {
  const size_t bytes = topic.size() + payload.size();
  queue_.push({std::move(topic), std::move(payload), retain}, bytes);
  wake_();
}

void MqttOutbox::connected(const std::string& last) {
  const std::lock_guard lock(mutex_);
  waiting_topics_.clear();
  for (auto& [topic, entry] : standing_) {
    entry.waits = true;
    if (topic != last) waiting_topics_.push_back(topic);
  }
  if (standing_.contains(last)) waiting_topics_.push_back(last);
}

std::optional<MqttMessage> MqttOutbox::take() {
  {
    const std::lock_guard lock(mutex_);
    while (!waiting_topics_.empty()) {
      std::string topic = std::move(waiting_topics_.front());
      waiting_topics_.pop_front();
      const auto found = standing_.find(topic);
      if (found == standing_.end() || !found->second.waits) continue;
      found->second.waits = false;
      return MqttMessage{std::move(topic), found->second.payload, true, true};
    }
  }
  return queue_.take();
}

void MqttOutbox::taken(const MqttMessage& message) {
  const std::lock_guard lock(mutex_);
  ++sent_;
  if (!message.standing || !message.payload.empty()) return;
  const auto found = standing_.find(message.topic);
  if (found == standing_.end() || !found->second.payload.empty() || found->second.waits) return;
  standing_.erase(found);
  --cleared_;
}

void MqttOutbox::refused() {
  const std::lock_guard lock(mutex_);
  ++dropped_;
}

void MqttOutbox::lost(std::vector<MqttMessage> messages) {
  for (MqttMessage& message : std::views::reverse(messages)) {
    if (message.standing) continue;  // connected() brings it again
    if (++message.losses >= kMostLosses) {
      refused();
      continue;
    }
    const size_t bytes = message.topic.size() + message.payload.size();
    queue_.put_back(std::move(message), bytes);
  }
}

MqttCounts MqttOutbox::counts() const {
  const std::lock_guard lock(mutex_);
  return {sent_, dropped_ + queue_.dropped(), queue_.waiting() + waiting_topics_.size()};
}

}  // namespace valora::streams
