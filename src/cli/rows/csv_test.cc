#include "cli/rows/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::cli {
namespace {

using ::testing::ElementsAreArray;

TEST(Csv, RowsAreReadAsTheyWereWritten) {
  const std::vector<std::string> fields = {"a", "", "b,c", "say \"x\"", "two\nlines", "\"", " d "};
  const std::string row = csv_row(fields);
  EXPECT_EQ(row, "a,,\"b,c\",\"say \"\"x\"\"\",\"two\nlines\",\"\"\"\", d \n");
  EXPECT_THAT(*csv_fields(std::string_view(row).substr(0, row.size() - 1)),
              ElementsAreArray(fields));
}

TEST(Csv, QuotesThatDoNotFitAreRefused) {
  for (const char* row : {"\"a", "\"a\"b", "a\"b", "a,\"b\"\"", "\"a\",\"b"})
    EXPECT_FALSE(csv_fields(row).ok()) << row;
}

}  // namespace
}  // namespace valora::cli
