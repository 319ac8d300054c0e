// Runs the operator tests that use a GPU; ops_test runs the others.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  GTEST_FLAG_SET(filter, "*cuda*:*Cuda*:*DeviceAdapters*:*Adjacent*:DeviceLora*");
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
