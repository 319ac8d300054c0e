// Each call of a capture fails in turn; whatever began is ended exactly once.
#include "ops/launch/capture_launches.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace valora::ops {
namespace {

enum class Call { kMemory, kBegin, kLaunch, kEnd, kGraph, kNone };

class FailingCapture final : public CaptureCalls {
 public:
  explicit FailingCapture(Call failing) : failing_(failing) {}

  void begin_memory() override {
    call(Call::kMemory);
    ++users, ++recording;
  }
  void end_memory() noexcept override { --recording; }
  void release_memory() noexcept override { --users; }
  void begin_launches() override {
    call(Call::kBegin);
    ++capturing;
  }
  void end_launches() override {
    --capturing;
    call(Call::kEnd);
  }
  void abandon_launches() noexcept override { --capturing; }
  void make_graph() override {
    EXPECT_EQ(recording, 0) << "what it allocates is not the graphs'";
    call(Call::kGraph);
    ++graphs;
  }
  void call(Call now) const {
    if (now == failing_) throw std::runtime_error("fails");
  }

  int users = 0, recording = 0, capturing = 0, graphs = 0;

 private:
  Call failing_;
};

TEST(CaptureLaunches, EndsEverythingItBeganOnFailure) {
  for (const Call failing :
       {Call::kMemory, Call::kBegin, Call::kLaunch, Call::kEnd, Call::kGraph}) {
    FailingCapture capture(failing);
    EXPECT_THROW(capture_launches(capture, [&] { capture.call(Call::kLaunch); }),
                 std::runtime_error);
    EXPECT_EQ(capture.users, 0) << static_cast<int>(failing);
    EXPECT_EQ(capture.recording, 0) << static_cast<int>(failing);
    EXPECT_EQ(capture.capturing, 0) << static_cast<int>(failing);
    EXPECT_EQ(capture.graphs, 0);
  }
}

TEST(CaptureLaunches, GraphHoldsMemoryForItsLifetime) {
  FailingCapture capture(Call::kNone);
  capture_launches(capture, [&] {
    EXPECT_EQ(capture.recording, 1);
    EXPECT_EQ(capture.capturing, 1);
  });
  EXPECT_EQ(capture.users, 1);
  EXPECT_EQ(capture.recording, 0);
  EXPECT_EQ(capture.capturing, 0);
  EXPECT_EQ(capture.graphs, 1);
}

}  // namespace
}  // namespace valora::ops
