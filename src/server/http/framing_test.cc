// Request smuggling: bytes after a rejected header are never run as a request.
#include "server/http/framing.h"

#include "server/testing/server_fixture.h"

namespace valora::server {
namespace {

using testing::chat_body;
using ::testing::HasSubstr;
using testing::kChat;
using testing::ServerTest;
using testing::SocketClient;

struct BadFraming {
  const char* version;
  const char* headers;
};

class Smuggling : public ServerTest, public ::testing::WithParamInterface<BadFraming> {};

TEST_P(Smuggling, AmbiguousFramingIsRefusedAndClosesTheConnection) {
  options_.limits.keep_alive_timeout = std::chrono::milliseconds(300);
  start();
  SocketClient client(port());
  client.send("POST /v1/chat/completions HTTP/" + std::string(GetParam().version) + "\r\n" +
              GetParam().headers + "\r\n" + SocketClient::post_text(kChat, chat_body("smuggled")));
  const std::string all = client.read_all();
  EXPECT_THAT(all, ::testing::AnyOf(HasSubstr("HTTP/1.1 400 "), HasSubstr("HTTP/1.1 501 ")));
  EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(all.find("HTTP/1.1 ", 1), all.npos) << all;  // one answer only
  EXPECT_TRUE(engine_.requests().empty());
  expect_alive();
}

INSTANTIATE_TEST_SUITE_P(
    Headers, Smuggling,
    ::testing::Values(
        BadFraming{"1.1", "Host: x\r\nTransfer-Encoding: xchunked\r\n"},
        BadFraming{"1.1", "Host: x\r\nTransfer-Encoding: chunked, identity\r\n"},
        BadFraming{"1.1", "Host: x\r\nTransfer-Encoding: identity\r\n"},
        BadFraming{"1.1", "Host: x\r\nTransfer-Encoding:\r\n"},
        BadFraming{"1.1", "Host: x\r\nTransfer-Encoding: gzip, chunked\r\n"},
        BadFraming{"1.1", "Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n"},
        BadFraming{"1.1", "Host: x\r\nTransfer-Encoding: \"chunked\"\r\n"},
        BadFraming{"1.1", "Host: x\r\nTransfer-Encoding : chunked\r\n"},
        BadFraming{"1.1", "Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n"},
        BadFraming{"1.1", "Host: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"},
        BadFraming{"1.1", "Host: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n"},
        BadFraming{"1.1", "Host: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n"},
        BadFraming{"1.1", "Host: x\r\nContent-Length: +0\r\n"},
        BadFraming{"1.1", "Host: x\r\nContent-Length: 0, 0\r\n"},
        BadFraming{"1.0", "Host: x\r\nTransfer-Encoding: chunked\r\n"},
        BadFraming{"1.1", "Host: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n"},
        BadFraming{"1.1", "Content-Length: 0\r\n"},
        BadFraming{"1.1", "Host: x\r\nHost: x\r\nContent-Length: 0\r\n"},
        BadFraming{"1.1", "Host: [localhost]\r\nContent-Length: 0\r\n"},
        BadFraming{"1.1", "Host: a@b\r\nContent-Length: 0\r\n"},
        BadFraming{"1.0", "Host: x\r\nHost: y\r\nContent-Length: 0\r\n"}));

TEST(Framing, UnambiguousRequestsAreAccepted) {
  EXPECT_FALSE(framing_fault({{"HOST", "x"}, {"transfer-encoding", "Chunked"}}, true));
  EXPECT_FALSE(framing_fault({{"Host", ""}, {"Content-Length", "5"}}, true));
  EXPECT_FALSE(framing_fault({{"Content-Length", "5"}}, false));
}

TEST(Framing, ExpectFollowsTheRfc) {
  EXPECT_FALSE(framing_fault({{"Host", "x"}, {"Expect", "100-Continue"}}, true));
  EXPECT_EQ(framing_fault({{"Host", "x"}, {"Expect", "cake"}}, true)->status, 417);
  EXPECT_EQ(framing_fault({{"Host", "x"}, {"Expect", "100-continue, cake"}}, true)->status, 417);
  EXPECT_EQ(
      framing_fault({{"Host", "x"}, {"Expect", "100-continue"}, {"Expect", "a"}}, true)->status,
      417);
  EXPECT_FALSE(framing_fault({{"Expect", "cake"}}, false)) << "HTTP/1.0 has none";
}

}  // namespace
}  // namespace valora::server
