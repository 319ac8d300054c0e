#include "base/machine/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/testing/temp_dir.h"

namespace valora {
namespace {

// The service manager's end of the socket.
class ServiceManager : public ::testing::Test {
 protected:
  void TearDown() override {
    unsetenv("NOTIFY_SOCKET");
    if (socket_ >= 0) close(socket_);
  }

  // name: as NOTIFY_SOCKET has it.
  void listen_at(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ASSERT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }

  std::string heard() {
    char text[64];
    const ssize_t size = recv(socket_, text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

  testing::TempDir folder_;
  int socket_ = -1;
};

TEST_F(ServiceManager, HearsTheState) {
  listen_at(folder_.file("notify"));
  EXPECT_TRUE(notify_service_manager("READY=1"));
  EXPECT_EQ(heard(), "READY=1");
}

TEST_F(ServiceManager, MayListenAtAnAbstractName) {
  listen_at("@valora-test-" + std::to_string(getpid()));
  EXPECT_TRUE(notify_service_manager("STOPPING=1"));
  EXPECT_EQ(heard(), "STOPPING=1");
}

TEST_F(ServiceManager, IsNotMissed) {
  EXPECT_FALSE(notify_service_manager("READY=1"));
  setenv("NOTIFY_SOCKET", folder_.file("nobody").c_str(), 1);
  EXPECT_FALSE(notify_service_manager("READY=1"));
  setenv("NOTIFY_SOCKET", std::string(200, 'a').c_str(), 1);
  EXPECT_FALSE(notify_service_manager("READY=1"));
}

}  // namespace
}  // namespace valora
