#include "streams/mqtt/mqtt_broker.h"

#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"

namespace valora::streams {
namespace {

Result<MqttBroker> read_url(const std::string& url) { return read_mqtt_settings({.url = url}); }

TEST(MqttBroker, UrlsNameHostPortAndUser) {
  const auto plain = read_url("mqtt://broker.local");
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->address(), "broker.local:1883");
  EXPECT_FALSE(plain->tls);
  EXPECT_EQ(plain->status_topic(), "valora/status");
  const auto full = read_url("mqtts://ha:p%40ss%3Aw@[::1]:9999/");
  ASSERT_TRUE(full.ok()) << full.error().message;
  EXPECT_TRUE(full->tls);
  EXPECT_EQ(full->host, "::1");
  EXPECT_EQ(full->address(), "[::1]:9999");
  EXPECT_EQ(full->user, "ha");
  EXPECT_EQ(full->password, "p@ss:w");
  EXPECT_EQ(read_url("mqtts://broker")->port, 8883);
}

TEST(MqttBroker, WrongSettingsAreRefusedWithoutTheirPassword) {
  for (const char* url :
       {"", "broker", "http://u:hidden@broker", "mqtt://u:hidden@", "mqtt://u:hidden@host:0",
        "mqtt://u:hidden@host/topic", "mqtt://u:hidden@host?x=1", "mqtt://u:hidden@host:99999"}) {
    const auto read = read_url(url);
    ASSERT_FALSE(read.ok()) << url;
    EXPECT_EQ(read.error().message.find("hidden"), std::string::npos) << read.error().message;
  }
  for (const char* prefix : {"", "/a", "a/", "a/+/b", "#", "$SYS"})
    EXPECT_FALSE(read_mqtt_settings({.url = "mqtt://b", .topic_prefix = prefix}).ok()) << prefix;
  EXPECT_TRUE(read_mqtt_settings({.url = "mqtt://b", .discovery_prefix = ""}).ok());
  EXPECT_FALSE(read_mqtt_settings({.url = "mqtt://b", .ca_file = "/etc/hostname"}).ok());
  EXPECT_FALSE(read_mqtt_settings({.url = "mqtts://b", .ca_file = "/nowhere.pem"}).ok());
}

TEST(MqttBroker, ThePasswordOfAFileWins) {
  const testing::TempDir dir;
  const std::string file = dir.write("password", "from-file\n");
  const auto password = [&](const std::string& url, const std::string& path) {
    const auto read =
        read_mqtt_settings({.url = url, .password_file = path, .password = "from-environment"});
    return read.ok() ? read->password : "refused";
  };
  EXPECT_EQ(password("mqtt://u:from-url@b", file), "from-file");
  EXPECT_EQ(password("mqtt://u:from-url@b", ""), "from-url");
  EXPECT_EQ(password("mqtt://u@b", ""), "from-environment");
  EXPECT_EQ(password("mqtt://b", ""), "");
  EXPECT_EQ(password("mqtt://b", file), "refused");
  EXPECT_EQ(password("mqtt://u@b", "/nowhere"), "refused");
}

}  // namespace
}  // namespace valora::streams
