#include "server/http/handler_pool.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace valora::server {
namespace {

constexpr size_t kShort = 1000, kLong = size_t{1} << 20;

// One thread for short requests and one for long ones, which stays busy until open().
class BusyWithLong : public ::testing::Test {
 protected:
  BusyWithLong() {
    std::promise<void> begun;
    pool_.post("gate", kLong, [this, &begun] {
      begun.set_value();
      gate_.get_future().wait();
    });
    begun.get_future().wait();
  }
  ~BusyWithLong() override { open(); }
  void open() {
    if (!std::exchange(opened_, true)) gate_.set_value();
  }
  void add(const std::string& name) {
    pool_.post(name.substr(0, 1), kLong, [this, name] { order_ += name + " "; });
  }

  std::promise<void> gate_;
  bool opened_ = false;
  std::string order_;
  HandlerPool pool_{1};  // destroyed first, because its jobs write to order_
};

TEST_F(BusyWithLong, ShortRequestDoesNotWaitForLongOnes) {
  for (int i = 0; i < 8; ++i) add("a" + std::to_string(i));
  std::promise<void> ran;
  pool_.post("a", kShort, [&] { ran.set_value(); });
  EXPECT_EQ(ran.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  EXPECT_EQ(order_, "") << "no long one ran";
}

TEST_F(BusyWithLong, ClientsTakeTurns) {
  for (const char* name : {"a1", "a2", "a3", "b1", "b2"}) add(name);
  open();
  pool_.finish();
  EXPECT_EQ(order_, "a1 b1 a2 b2 a3 ");
}

TEST_F(BusyWithLong, RequestsAfterStopAreDropped) {
  open();
  pool_.finish();
  auto held = std::make_shared<int>();
  pool_.post("a", kShort, [held] { ADD_FAILURE() << "it ran"; });
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace valora::server
