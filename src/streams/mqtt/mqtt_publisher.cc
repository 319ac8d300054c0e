#include "streams/mqtt/mqtt_publisher.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "media/image/encode_jpeg.h"
#include "streams/stream.h"

namespace valora::streams {
namespace {

constexpr int kSnapshotQuality = 90;

std::string as_text(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// A camera's frames are JPEG; a pushed one may be anything.
Result<std::string> as_jpeg(const Frame& frame) {
  if (frame.type == "image/jpeg") return frame.bytes;
  VALORA_TRY(image, media::decode_image(
                        {reinterpret_cast<const uint8_t*>(frame.bytes.data()), frame.bytes.size()},
                        media::Limits()));
  return media::encode_jpeg(image, kSnapshotQuality);
}

}  // namespace

void MqttPublisher::added(const Stream& stream) {
  const StreamSpec& spec = stream.spec();
  if (!spec.mqtt.on) return;
  const std::lock_guard lock(mutex_);
  const std::string all = broker_.topic_prefix + "/streams/";
  std::string base = all + (spec.name.empty() ? stream.id() : topic_level(spec.name));
  if (!bases_.insert(base).second) bases_.insert(base = all + stream.id());
  Published& published = streams_[stream.id()];
  published.topics = stream_topics(base, spec);
  if (!broker_.discovery_prefix.empty())
    published.discovery = discovery_messages(broker_.discovery_prefix, broker_.status_topic(),
                                             stream.id(), spec, published.topics);
  for (const RetainedText& message : published.discovery)
    outbox_.keep(message.topic, message.payload);
  outbox_.keep(published.topics.state, state_name(stream.state()));
  for (const SkillTopics& skill : published.topics.skills)
    if (!skill.active.empty()) outbox_.keep(skill.active, "OFF");
}

void MqttPublisher::removed(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const Published& published = found->second;
  for (const RetainedText& message : published.discovery) outbox_.clear(message.topic);
  for (const SkillTopics& skill : published.topics.skills)
    for (const std::string& topic : {skill.answer, skill.active, skill.snapshot})
      if (!topic.empty()) outbox_.clear(topic);
  for (const SkillTopics& skill : published.topics.skills)  // behind snapshots that still wait
    if (!skill.snapshot.empty()) outbox_.send(skill.snapshot, {}, true);
  outbox_.clear(published.topics.state);
  bases_.erase(published.topics.base);
  streams_.erase(found);
}

void MqttPublisher::changed(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (const auto found = streams_.find(stream.id()); found != streams_.end())
    outbox_.keep(found->second.topics.state, state_name(stream.state()));
}

void MqttPublisher::told(const Stream& stream, const Event& event, const OrderedJson& fields) {
  std::string snapshot;  // its topic
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream.id());
    if (found == streams_.end()) return;
    const StreamTopics& topics = found->second.topics;
    if (event.type == "answers") tell_answers(topics, stream, fields);
    if (event.type == "start" || event.type == "end")
      snapshot = tell_edge(topics, stream, event.type == "start", fields);
    if (event.type != "answers" || stream.spec().mqtt.answers)
      outbox_.send(topics.events, event.json);
  }
  if (!snapshot.empty()) send_snapshot(snapshot, stream, fields.at("frame").get<int64_t>());
}

// A skill whose answer failed keeps its last one.
void MqttPublisher::tell_answers(const StreamTopics& topics, const Stream& stream,
                                 const OrderedJson& fields) {
  const auto answers = fields.find("answers");
  if (answers == fields.end()) return;
  const auto& skills = stream.spec().skills;
  for (size_t i = 0; i < skills.size(); ++i) {
    const auto answer = answers->find(skills[i].name);
    if (answer == answers->end() || !answer->contains("content")) continue;
    OrderedJson told = *answer;
    for (const char* key : {"frame", "frame_time", "time"}) told[key] = fields.at(key);
    outbox_.keep(topics.skills[i].answer, as_text(told));
  }
}

std::string MqttPublisher::tell_edge(const StreamTopics& topics, const Stream& stream, bool begins,
                                     const OrderedJson& fields) {
  const auto& skills = stream.spec().skills;
  const auto skill =
      std::ranges::find(skills, fields.at("skill").get<std::string>(), &StandingSkill::name);
  if (skill == skills.end()) return {};
  const SkillTopics& of_skill = topics.skills[static_cast<size_t>(skill - skills.begin())];
  outbox_.keep(of_skill.active, begins ? "ON" : "OFF");
  return begins ? of_skill.snapshot : std::string();
}

void MqttPublisher::send_snapshot(const std::string& topic, const Stream& stream, int64_t id) {
  const FramePtr frame = stream.frame(id);
  if (!frame) return;
  auto jpeg = as_jpeg(*frame);
  if (!jpeg.ok())
    return spdlog::warn("a frame of {} is no snapshot: {}", stream.id(), jpeg.error().message);
  const std::lock_guard lock(mutex_);
  if (streams_.contains(stream.id())) outbox_.send(topic, std::move(*jpeg), true);
}

std::string MqttPublisher::topic_of(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  return found == streams_.end() ? std::string() : found->second.topics.base;
}

}  // namespace valora::streams
