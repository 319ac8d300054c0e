#include "streams/mqtt/mqtt_outbox.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace valora::streams {
namespace {

// What a connection publishes, as "TOPIC=PAYLOAD", and "!" behind a retained message.
std::vector<std::string> published(MqttOutbox& outbox, bool taken = true) {
  std::vector<std::string> out;
  while (const auto message = outbox.take()) {
    out.push_back(message->topic + "=" + message->payload + (message->retain ? "!" : ""));
    if (taken) outbox.taken(*message);
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(MqttOutbox, OfARetainedTopicTheLastPayloadIsPublished) {
  int woken = 0;
  MqttOutbox outbox([&] { ++woken; });
  outbox.send("events", "1");
  outbox.keep("state", "waiting");
  outbox.keep("state", "running");
  EXPECT_EQ(woken, 3);
  EXPECT_EQ(published(outbox), (Texts{"state=running!", "events=1"}));
  outbox.keep("state", "running");  // as it is
  EXPECT_EQ(published(outbox), Texts());
  EXPECT_EQ(outbox.counts().sent, 2);
  EXPECT_EQ(outbox.counts().dropped, 0);
}

TEST(MqttOutbox, EveryConnectionPublishesAllThatIsRetained) {
  MqttOutbox outbox;
  outbox.keep("b", "1");
  outbox.keep("a", "2");
  outbox.send("events", "3");
  published(outbox);
  outbox.connected();
  EXPECT_EQ(published(outbox), (Texts{"a=2!", "b=1!"}));
  outbox.connected("a");
  EXPECT_EQ(published(outbox), (Texts{"b=1!", "a=2!"}));
}

TEST(MqttOutbox, AClearedTopicIsForgottenOnceABrokerHasForgottenIt) {
  MqttOutbox outbox;
  outbox.keep("a", "1");
  published(outbox);
  outbox.clear("a");
  EXPECT_EQ(published(outbox, false), Texts{"a=!"});
  outbox.connected();  // the broker had not taken it
  EXPECT_EQ(published(outbox), Texts{"a=!"});
  outbox.connected();
  EXPECT_EQ(published(outbox), Texts());
  outbox.keep("a", "2");
  EXPECT_EQ(published(outbox), Texts{"a=2!"});
}

TEST(MqttOutbox, ATopicThatIsKeptAgainWhileItIsClearedStays) {
  MqttOutbox outbox;
  outbox.clear("a");
  const auto clearing = outbox.take();
  outbox.keep("a", "1");
  outbox.taken(*clearing);
  EXPECT_EQ(published(outbox), Texts{"a=1!"});
  outbox.connected();
  EXPECT_EQ(published(outbox), Texts{"a=1!"});
}

TEST(MqttOutbox, WithoutABrokerTheOldestEventsAreDroppedAndCounted) {
  MqttOutbox outbox;
  for (size_t i = 0; i < MqttOutbox::kMostWaiting + 5; ++i)
    outbox.send("events", std::to_string(i));
  EXPECT_EQ(outbox.counts().dropped, 5);
  EXPECT_EQ(outbox.counts().waiting, MqttOutbox::kMostWaiting);
  EXPECT_EQ(outbox.take()->payload, "5");
  for (int i = 0; i < 5; ++i)
    outbox.send("snapshot", std::string(MqttOutbox::kMostWaitingBytes / 2, 'x'), true);
  EXPECT_LE(outbox.counts().waiting, 2u);
}

TEST(MqttOutbox, ClearedTopicsAreBoundedToo) {
  MqttOutbox outbox;
  for (size_t i = 0; i < MqttOutbox::kMostCleared + 7; ++i) outbox.clear(fmt::format("t{}", i));
  EXPECT_EQ(outbox.counts().dropped, 7);
  EXPECT_EQ(published(outbox).size(), MqttOutbox::kMostCleared);
}

TEST(MqttOutbox, AClearedTopicThatIsKeptAgainNoLongerCountsAsCleared) {
  MqttOutbox outbox;
  for (size_t i = 0; i <= MqttOutbox::kMostCleared; ++i) {
    outbox.clear("a");
    outbox.keep("a", "1");
  }
  outbox.clear("b");
  EXPECT_EQ(outbox.counts().dropped, 0);
}

TEST(MqttOutbox, WhatALostConnectionTookIsPublishedAgainInItsOrderButNotForever) {
  MqttOutbox outbox;
  for (const char* text : {"1", "2", "3"}) outbox.send("events", text);
  outbox.keep("state", "running");
  for (int loss = 1; loss < MqttOutbox::kMostLosses; ++loss) {
    std::vector<MqttMessage> under_way;
    outbox.connected();
    for (int i = 0; i < 3; ++i) under_way.push_back(*outbox.take());
    EXPECT_EQ(under_way[0].topic, "state");
    EXPECT_EQ(under_way[2].payload, "2");
    outbox.lost(std::move(under_way));
  }
  std::vector<MqttMessage> last;
  last.push_back(*outbox.take());
  EXPECT_EQ(last[0].payload, "1");
  outbox.lost(std::move(last));
  EXPECT_EQ(outbox.counts().dropped, 1);
  EXPECT_EQ(published(outbox), (Texts{"events=2", "events=3"}));
}

}  // namespace
}  // namespace valora::streams
