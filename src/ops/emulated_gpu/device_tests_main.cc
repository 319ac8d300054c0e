// Runs those of the operators' tests that are on a GPU. The others run in ops_test.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  GTEST_FLAG_SET(filter, "*cuda*:*DeviceAdapters*:*Adjacent*:DeviceLora*");
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
