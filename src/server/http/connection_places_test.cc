// More clients than the connection limit allows.
#include "server/testing/server_fixture.h"

namespace valora::server {
namespace {

using testing::chat_body;
using ::testing::HasSubstr;
using testing::kChat;
using testing::kStream;
using testing::ServerTest;
using testing::SocketClient;

TEST_F(ServerTest, ConnectionAboveTheLimitIs503) {
  options_.limits.max_connections = 2;
  options_.limits.status_connections = 0;
  start();
  SocketClient first(port()), second(port());
  for (SocketClient* client : {&first, &second}) {
    client->send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
    client->read_until("!hang");
  }
  SocketClient third(port());
  EXPECT_THAT(third.read_all(), HasSubstr("503 Service Unavailable"));
  engine_.release_hanging();
  EXPECT_THAT(first.read_until("0\r\n\r\n"), HasSubstr("[DONE]"));
  EXPECT_EQ(first.get("/health").status, 200);
}

// One io thread, here and below: connections become idle in the order in which they are served.
// With more, a connection may count as idle only after its client has read the answer and gone on.
TEST_F(ServerTest, NewClientReplacesTheLongestIdleConnection) {
  options_.limits.max_connections = 3;
  options_.io_threads = 1;
  start();
  SocketClient busy(port()), silent(port()), slow(port());
  busy.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  busy.read_until("!hang");
  slow.send("POST /v1/chat");
  EXPECT_FALSE(slow.readable(50)) << "both have begun to wait";
  EXPECT_EQ(SocketClient(port()).post(kChat, chat_body("x")).status, 200);
  EXPECT_EQ(silent.read_all(), "") << "closed without a word";
  // One after the other: the previous connection may still count, in which case the first of these
  // takes the place of `slow`.
  SocketClient next(port());
  EXPECT_EQ(next.post(kChat, chat_body("x")).status, 200);
  SocketClient last(port());
  EXPECT_EQ(last.post(kChat, chat_body("x")).status, 200);
  EXPECT_EQ(slow.read_all(), "") << "its header never came";
  engine_.release_hanging();
  EXPECT_THAT(busy.read_until("0\r\n\r\n"), HasSubstr("[DONE]"));
}

TEST_F(ServerTest, ReusedConnectionRestartsItsIdleTime) {
  options_.limits.max_connections = 2;
  options_.io_threads = 1;
  start();
  SocketClient first(port()), second(port());
  EXPECT_EQ(second.get("/health").status, 200);
  EXPECT_EQ(first.get("/health").status, 200);  // now `second` has waited longest
  EXPECT_EQ(SocketClient(port()).get("/health").status, 200);
  EXPECT_EQ(second.read_all(), "");
  EXPECT_EQ(first.get("/health").status, 200);
}

TEST_F(ServerTest, DescriptorShortageClosesAnIdleConnection) {
  start();
  SocketClient idle(port());
  EXPECT_EQ(idle.get("/health").status, 200);
  // This connection may lose its place too: the server accepts ahead, which takes a descriptor
  // before any client has come.
  SocketClient spare(port());
  EXPECT_EQ(spare.get("/health").status, 200);
  std::vector<int> taken;
  for (int fd; (fd = ::dup(STDERR_FILENO)) >= 0;) taken.push_back(fd);
  ASSERT_FALSE(taken.empty());
  ::close(taken.back());  // frees a descriptor for the client
  taken.pop_back();
  SocketClient late(port());
  ASSERT_TRUE(late.connected());
  EXPECT_EQ(late.post(kChat, chat_body("x")).status, 200);
  EXPECT_EQ(idle.read_all(), "");
  for (const int fd : taken) ::close(fd);
  expect_alive();
}

}  // namespace
}  // namespace valora::server
