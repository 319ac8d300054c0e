// The server on a Unix domain socket.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "server/testing/server_fixture.h"

namespace valora::server {
namespace {

using testing::chat_body;
using ::testing::HasSubstr;
using testing::kChat;
using testing::SocketClient;

class UnixSocketTest : public testing::ServerTest {
 protected:
  UnixSocketTest() {
    std::filesystem::remove(path_);
    options_.uds = path_;
  }
  ~UnixSocketTest() override { std::filesystem::remove(path_); }
  std::string refusal() {
    const auto server = Server::start(options_, engine_);
    return server.ok() ? "none" : server.error().message;
  }

  const std::string path_ = ::testing::TempDir() + "valora_uds_test.sock";
};

TEST_F(UnixSocketTest, AnswersAndRemovesItsFileOnExit) {
  options_.uds_mode = 0640;
  start();
  struct stat file{};
  ASSERT_EQ(lstat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0640U);
  EXPECT_EQ(server_->url(), "unix:" + path_);
  SocketClient client(path_);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.post(kChat, chat_body("hello")).status, 200);
  EXPECT_THAT(client.post(kChat, chat_body("hello", R"("stream":true)")).head,
              HasSubstr("text/event-stream"));
  EXPECT_THAT(client.read_until("data: [DONE]\n\n"), HasSubstr("hello"));
  server_->stop();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path_)));
}

TEST_F(UnixSocketTest, ReplacesAStaleSocket) {
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(left, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(left);
  start();
  EXPECT_EQ(SocketClient(path_).get("/health").status, 200);
}

TEST_F(UnixSocketTest, KeepsLiveSocketsAndOtherFiles) {
  start();
  EXPECT_THAT(refusal(), HasSubstr("another program listens there"));
  EXPECT_EQ(SocketClient(path_).get("/health").status, 200);
  server_->stop();
  std::ofstream(path_) << "mine";
  EXPECT_THAT(refusal(), HasSubstr("is not a socket"));
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
}

TEST_F(UnixSocketTest, DoesNotRemoveAFileThatReplacedItsSocket) {
  start();
  std::filesystem::remove(path_);
  std::ofstream(path_) << "mine";
  server_->stop();
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
}

TEST_F(UnixSocketTest, RefusesInvalidPaths) {
  options_.uds = "/tmp/" + std::string(200, 'a');
  EXPECT_THAT(refusal(), HasSubstr("1 to 107 bytes, not 205"));
  options_.uds = "/nowhere/at/all.sock";
  EXPECT_THAT(refusal(), HasSubstr("can't listen on /nowhere/at/all.sock"));
}

}  // namespace
}  // namespace valora::server
