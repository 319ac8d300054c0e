#include "streams/mqtt/mqtt_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/parse_ordered.h"
#include "media/image/encode_jpeg.h"
#include "streams/stream.h"

namespace valora::streams {
namespace {

using ::testing::ElementsAre;
using Published = std::map<std::string, std::string>;

constexpr const char* kSpec =
    R"({"source": "push", "name": "Gate 1", "skills": [{"model": "coins/eu", "event":
        {"when": {"contains": "coin"}}}, "coins eu"], "mqtt": {"snapshots": true}})";

// Streams whose chats are answered at once by `answers`, published to an outbox without a broker.
class MqttPublisherTest : public ::testing::Test {
 protected:
  std::unique_ptr<Stream> stream(const std::string& id, const std::string& text) {
    auto spec = parse_stream_spec(text);
    EXPECT_TRUE(spec.ok()) << spec.error().message;
    StreamParts parts;
    parts.ask = [this](const std::string&, const std::string&, const auto& done) {
      done({200, answers});
      return [] {};
    };
    parts.output = &publisher;
    auto out = std::make_unique<Stream>(id, "", std::move(*spec), std::move(parts));
    publisher.added(*out);
    return out;
  }

  // What was published since the last call; the last payload of each topic.
  Published published() {
    Published out;
    while (const auto message = outbox.take()) {
      out[message->topic] = message->payload;
      retained[message->topic] = message->retain;
      outbox.taken(*message);
    }
    return out;
  }

  // Pushes a frame and waits until its answers are in the log.
  static void push(Stream& stream, const std::string& bytes) {
    const int64_t before = stream.counts().answered;
    ASSERT_TRUE(stream.push(bytes).ok());
    while (stream.counts().answered == before) std::this_thread::yield();
  }

  static std::string skill_answers(const std::string& first, const std::string& second) {
    const auto answer = [](const std::string& text) {
      return OrderedJson{
          {"choices", {{{"message", {{"content", text}}}, {"finish_reason", "stop"}}}}};
    };
    return OrderedJson{{"skills", {{"coins/eu", answer(first)}, {"coins eu", answer(second)}}}}
        .dump();
  }

  MqttBroker broker{.host = "broker", .topic_prefix = "valora", .discovery_prefix = "ha"};
  MqttOutbox outbox;
  MqttPublisher publisher{broker, outbox};
  std::string answers;
  std::map<std::string, bool> retained;
};

TEST_F(MqttPublisherTest, AStreamIsADeviceOfHomeAssistant) {
  const auto gate = stream("stream_1", kSpec);
  const Published told = published();
  std::vector<std::string> topics;
  for (const auto& [topic, _] : told) topics.push_back(topic);
  EXPECT_THAT(topics, ElementsAre("ha/binary_sensor/valora_stream_1/coins_eu_active/config",
                                  "ha/image/valora_stream_1/coins_eu_snapshot/config",
                                  "ha/sensor/valora_stream_1/coins_eu_2_answer/config",
                                  "ha/sensor/valora_stream_1/coins_eu_answer/config",
                                  "ha/sensor/valora_stream_1/state/config",
                                  "valora/streams/Gate_1/skills/coins_eu/active",
                                  "valora/streams/Gate_1/state"));
  EXPECT_EQ(told.at("valora/streams/Gate_1/state"), "paused");
  EXPECT_EQ(told.at("valora/streams/Gate_1/skills/coins_eu/active"), "OFF");
  std::set<std::string> ids;
  for (const auto& [topic, payload] : told) {
    EXPECT_TRUE(retained[topic]) << topic;
    if (!topic.starts_with("ha/")) continue;
    const auto config = Json::parse(payload);
    ids.insert(config["unique_id"].get<std::string>());
    EXPECT_EQ(config["device"]["identifiers"], Json::array({"valora_stream_1"}));
    EXPECT_EQ(config["device"]["name"], "Gate 1");
    EXPECT_EQ(config["availability"][0]["topic"], "valora/status");
  }
  EXPECT_EQ(ids.size(), 5u);
  const auto active =
      Json::parse(told.at("ha/binary_sensor/valora_stream_1/coins_eu_active/config"));
  EXPECT_EQ(active["state_topic"], "valora/streams/Gate_1/skills/coins_eu/active");
  EXPECT_EQ(active["availability"][1]["topic"], "valora/streams/Gate_1/state");
  const auto image = Json::parse(told.at("ha/image/valora_stream_1/coins_eu_snapshot/config"));
  EXPECT_EQ(image["image_topic"], "valora/streams/Gate_1/skills/coins_eu/snapshot");
}

TEST_F(MqttPublisherTest, AnswersEdgesAndSnapshotsHaveTopics) {
  const auto gate = stream("stream_1", kSpec);
  gate->start();
  published();
  media::Image picture{.width = 16, .height = 8, .rgb = std::vector<uint8_t>(16 * 8 * 3, 90)};
  const std::string jpeg = media::encode_jpeg(picture, 90).value();
  answers = skill_answers("a coin", "none");
  push(*gate, jpeg);
  gate->pause();
  Published told = published();
  const std::string base = "valora/streams/Gate_1";
  const auto answer = Json::parse(told.at(base + "/skills/coins_eu/answer"));
  EXPECT_EQ(answer["content"], "a coin");
  EXPECT_EQ(answer["frame"], 1);
  EXPECT_EQ(Json::parse(told.at(base + "/skills/coins_eu_2/answer"))["content"], "none");
  EXPECT_EQ(told.at(base + "/skills/coins_eu/active"), "ON");
  EXPECT_EQ(told.at(base + "/skills/coins_eu/snapshot"), jpeg);
  EXPECT_EQ(told.at(base + "/state"), "paused");
  EXPECT_FALSE(retained[base + "/events"]);
  EXPECT_TRUE(retained[base + "/skills/coins_eu/snapshot"]);

  gate->start();
  answers = skill_answers("nothing", "none");
  push(*gate, jpeg);
  gate->pause();
  told = published();
  EXPECT_EQ(told.at(base + "/skills/coins_eu/active"), "OFF");
  EXPECT_EQ(told.count(base + "/skills/coins_eu/snapshot"), 0u);

  publisher.removed("stream_1");
  told = published();
  EXPECT_EQ(told.size(), 10u);  // five entities, state, two answers, active, snapshot
  for (const auto& [topic, payload] : told) EXPECT_EQ(payload, "") << topic;
  outbox.connected();
  EXPECT_TRUE(published().empty());
}

TEST_F(MqttPublisherTest, ASnapshotThatWaitsDoesNotOutliveItsStream) {
  const auto gate = stream("stream_1", kSpec);
  gate->start();
  media::Image picture{.width = 16, .height = 8, .rgb = std::vector<uint8_t>(16 * 8 * 3, 90)};
  answers = skill_answers("a coin", "none");
  push(*gate, media::encode_jpeg(picture, 90).value());
  gate->pause();
  publisher.removed("stream_1");
  EXPECT_EQ(published().at("valora/streams/Gate_1/skills/coins_eu/snapshot"), "");
}

TEST_F(MqttPublisherTest, EventsAreThoseOfTheLogAndAnswersAmongThemOnRequest) {
  for (const bool all : {false, true}) {
    const auto one = stream(all ? "stream_2" : "stream_1",
                            R"({"source": "push", "skills": ["coins/eu", "coins eu"], "mqtt": )" +
                                std::string(all ? R"({"answers": true}})" : "true}"));
    one->start();
    answers = skill_answers("x", "y");
    media::Image picture{.width = 8, .height = 8, .rgb = std::vector<uint8_t>(8 * 8 * 3)};
    push(*one, media::encode_jpeg(picture, 90).value());
    one->pause();
    std::vector<std::string> sent, logged;
    while (const auto message = outbox.take())
      if (message->topic.ends_with("/events")) sent.push_back(message->payload);
    for (const EventPtr& event : one->events().after(0, 100))
      if (all || event->type != "answers") logged.push_back(event->json);
    EXPECT_EQ(sent, logged);
    EXPECT_EQ(sent.size(), all ? 3u : 2u);
  }
}

TEST_F(MqttPublisherTest, ANameThatIsTakenGivesWayToTheId) {
  const auto first = stream("stream_1", R"({"source": "push", "skills": ["a"], "name": "x/y"})");
  const auto second = stream("stream_2", R"({"source": "push", "skills": ["a"], "name": "x y"})");
  const auto silent = stream("stream_3", R"({"source": "push", "skills": ["a"], "mqtt": false})");
  EXPECT_EQ(publisher.topic_of("stream_1"), "valora/streams/x_y");
  EXPECT_EQ(publisher.topic_of("stream_2"), "valora/streams/stream_2");
  EXPECT_EQ(publisher.topic_of("stream_3"), "");
  publisher.removed("stream_1");
  const auto third = stream("stream_4", R"({"source": "push", "skills": ["a"], "name": "x+y"})");
  EXPECT_EQ(publisher.topic_of("stream_4"), "valora/streams/x_y");
}

TEST_F(MqttPublisherTest, NoSecretOfASourceIsPublished) {
  const auto camera = stream("stream_1",
                             R"({"source": "rtsp://u:hidden@cam/x", "skills": ["a"], "webhook":
                                 {"url": "http://u:hidden@h/", "secret": "hidden"}})");
  for (const auto& [topic, payload] : published())
    EXPECT_EQ(payload.find("hidden"), std::string::npos) << topic;
}

TEST(MqttTopics, LevelsHaveNothingThatMqttReadsOtherwise) {
  EXPECT_EQ(topic_level("Tor/+#$ \n\"1\""), "Tor_______1_");
  EXPECT_EQ(topic_level("Küche"), "Küche");
}

TEST(StreamSpec, MqttIsAFlagOrItsOptions) {
  const auto read = [](const std::string& mqtt) {
    return parse_stream_spec(R"({"source": "push", "skills": ["a"])" + mqtt + "}");
  };
  EXPECT_TRUE(read("")->mqtt.on);
  EXPECT_FALSE(read("")->mqtt.asked);
  EXPECT_FALSE(read(R"(, "mqtt": false)")->mqtt.on);
  EXPECT_TRUE(read(R"(, "mqtt": {"answers": true})")->mqtt.asked);
  EXPECT_TRUE(read(R"(, "mqtt": {"answers": true})")->mqtt.answers);
  EXPECT_EQ(read(R"(, "mqtt": 1)").error().param, "mqtt");
  EXPECT_EQ(read(R"(, "mqtt": {"snapshots": 1})").error().param, "mqtt.snapshots");
  EXPECT_EQ(read(R"(, "mqtt": {"topic": "x"})").error().param, "mqtt.topic");
}

}  // namespace
}  // namespace valora::streams
