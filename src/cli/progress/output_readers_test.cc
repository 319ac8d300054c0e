#include "cli/progress/stop_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace valora::cli {
namespace {

// Connects a descriptor to a pipe that nobody reads.
void lose_reader(int descriptor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::dup2(ends[1], descriptor);
  ::close(ends[0]);
  ::close(ends[1]);
}

// The error of a write to a socket whose peer has left.
int error_of_lost_peer() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return -1;
  ::close(ends[0]);
  const ssize_t written = ::write(ends[1], "x", 1);
  return written < 0 ? errno : 0;
}

TEST(OutputReadersDeathTest, WriteWithoutReaderEndsTheProcessQuietly) {
  for (const int output : {STDOUT_FILENO, STDERR_FILENO})
    EXPECT_EXIT(
        {
          end_with_output_readers();
          lose_reader(output);
          (void)!::write(output, "x", 1);
          std::_Exit(1);
        },
        ::testing::KilledBySignal(SIGPIPE), "");
}

TEST(OutputReadersDeathTest, LostPeerIsAnErrorOfItsWrite) {
  EXPECT_EXIT(
      {
        end_with_output_readers();
        std::_Exit(error_of_lost_peer() == EPIPE ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(OutputReadersDeathTest, ServersOutliveTheirReaders) {
  EXPECT_EXIT(
      {
        end_with_output_readers();
        outlive_output_readers();
        for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
          lose_reader(output);
          if (::write(output, "x", 1) >= 0 || errno != EPIPE) std::_Exit(1);
        }
        std::_Exit(error_of_lost_peer() == EPIPE ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(OutputReadersDeathTest, IgnoredSignalStaysIgnored) {
  EXPECT_EXIT(
      {
        std::signal(SIGPIPE, SIG_IGN);
        end_with_output_readers();
        lose_reader(STDOUT_FILENO);
        std::_Exit(::write(STDOUT_FILENO, "x", 1) < 0 && errno == EPIPE ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace valora::cli
