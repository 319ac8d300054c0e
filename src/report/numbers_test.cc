#include "report/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace valora::report {
namespace {

TEST(ReportNumbers, FormatsNumbersBriefly) {
  EXPECT_EQ(percent(0.71249), "71.2");
  EXPECT_EQ(percent({}), "–");
  EXPECT_EQ(gain(0.5, 0.741), "+24.1");
  EXPECT_EQ(gain(0.5, 0.25), "−25.0");
  EXPECT_EQ(gain(0.5, 0.4999), "0.0");
  EXPECT_EQ(duration(8.24), "8.2 s");
  EXPECT_EQ(duration(59.99), "1 min 00 s");
  EXPECT_EQ(duration(3599.7), "1 h 00 min");
  EXPECT_EQ(duration(3 * 3600 + 5 * 60), "3 h 05 min");
  EXPECT_EQ(duration(-1), "–");
  EXPECT_EQ(byte_size(999), "999 B");
  EXPECT_EQ(byte_size(3'145'728), "3.1 MB");
  EXPECT_EQ(byte_size(999'600), "1.0 MB");
  EXPECT_EQ(byte_size(size_t{31} << 30), "33 GB");
  EXPECT_EQ(decimal(0.11449), "0.114");
  EXPECT_EQ(decimal(NAN), "–");
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(0, "step"), "0 steps");
}

}  // namespace
}  // namespace valora::report
