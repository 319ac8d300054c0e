#include "base/fault.h"

#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/testing/allocation_faults.h"

namespace valora {
namespace {

using testing::AllocationFault;

const std::string kLong(100, 'x');

TEST(FaultTest, MessageNamesOperationAndReason) {
  const Error error = fault("the answer could not be made", std::runtime_error("no reason"));
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_EQ(error.message, "the answer could not be made: no reason");
  EXPECT_EQ(copy_of(error).message, error.message);
}

TEST(FaultTest, BadAllocBecomesOutOfMemory) {
  const Error error = fault("the answer could not be made", std::bad_alloc());
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.message, "out of memory");
}

TEST(FaultTest, ReportsErrorWhenOutOfMemory) {
  const std::runtime_error reason(kLong);
  const Error known = internal(kLong);
  std::optional<Error> told, copied, plain;
  {
    const AllocationFault lasting(0, true);
    told = fault("the answer could not be made", reason);
    copied = copy_of(known);
    plain = out_of_memory();
  }
  for (const auto& error : {told, copied, plain}) EXPECT_EQ(error->message, "out of memory");
}

}  // namespace
}  // namespace valora
