// A list of copies to a device in which one cannot be started; needs no device.
#include "ops/device/device_copy.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace valora::ops {
namespace {

// Copies nothing until wait(), as a device may do.
class LazyCopier final : public Copier {
 public:
  void copy(const at::Tensor& to, const at::Tensor& from) override {
    if (begun_++ == failing) throw std::runtime_error("the copy was refused");
    in_flight.push_back({to, from});
  }
  void wait() override {
    for (const Copy& one : in_flight) one.to.copy_(one.from);
    in_flight.clear();
    if (lost) throw std::runtime_error("the device is lost");
  }

  int failing = -1;
  bool lost = false;
  std::vector<Copy> in_flight;

 private:
  int begun_ = 0;
};

class CopyAll : public ::testing::Test {
 protected:
  void copy(int blocks) {
    for (int i = 0; i < blocks; ++i) copies_.push_back({at::zeros({4}), at::full({4}, i + 1)});
    const CopyList list{copier_, copies_};
    copy_all({&list, 1});
  }
  // The number of blocks that have received their copy; the others still have another owner's
  // values.
  int written() const {
    int count = 0;
    for (const Copy& one : copies_) count += at::equal(one.to, one.from) ? 1 : 0;
    return count;
  }
  LazyCopier copier_;
  std::vector<Copy> copies_;
};

TEST_F(CopyAll, WaitsForAllCopies) {
  copy(5);
  EXPECT_EQ(written(), 5);
  EXPECT_TRUE(copier_.in_flight.empty());
}

TEST_F(CopyAll, FailedStartLeavesNothingInFlight) {
  copier_.failing = 3;
  EXPECT_THROW(copy(5), std::runtime_error);
  EXPECT_TRUE(copier_.in_flight.empty());
  EXPECT_EQ(written(), 3);
}

TEST_F(CopyAll, ReportsFirstError) {
  copier_.failing = 2;
  copier_.lost = true;
  try {
    copy(5);
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "the copy was refused");
  }
}

TEST_F(CopyAll, WaitReportsErrorOfStartedCopy) {
  copier_.lost = true;
  EXPECT_THROW(copy(2), std::runtime_error);
}

TEST_F(CopyAll, WaitsForAllDevices) {
  LazyCopier other;
  std::vector<Copy> of_other;
  for (int i = 0; i < 3; ++i) {
    copies_.push_back({at::zeros({4}), at::full({4}, i + 1)});
    of_other.push_back({at::zeros({4}), at::full({4}, i + 1)});
  }
  const CopyList lists[] = {{copier_, copies_}, {other, of_other}};
  copy_all(lists);
  EXPECT_EQ(written(), 3);
  EXPECT_TRUE(at::equal(of_other[2].to, of_other[2].from));
  copier_.lost = true;
  EXPECT_THROW(copy_all(lists), std::runtime_error);
  EXPECT_TRUE(other.in_flight.empty()) << "the memory of both may be given to others";
}

}  // namespace
}  // namespace valora::ops
