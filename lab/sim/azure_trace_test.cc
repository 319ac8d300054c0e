#include "lab/sim/azure_trace.h"

#include <gtest/gtest.h>

#include <string>

#include "base/testing/temp_dir.h"

namespace valora::sim {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

const std::string kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

Result<std::vector<TraceRow>> read(const std::string& content) {
  const valora::testing::TempDir directory;
  return read_azure_trace(directory.write("trace.csv", content));
}

// The time between the rows of a two-row file.
Duration between(const std::string& first, const std::string& second) {
  const auto rows = read(kHeader + first + ",1,1\n" + second + ",1,1\n");
  EXPECT_TRUE(rows.ok());
  return rows.ok() ? rows->at(1).at : Duration(-1);
}

// The error for a file with this content, without its folder.
std::string error_of(const std::string& content) {
  const auto rows = read(content);
  if (rows.ok()) return "none";
  EXPECT_EQ(rows.error().code, ErrorCode::kInvalidArgument);
  const std::string& message = rows.error().message;
  EXPECT_EQ(message.rfind(rows.error().param, 0), 0u) << message;
  return message.substr(message.find("trace.csv"));
}

// The error for a file whose third line is `row`.
std::string row_error(const std::string& row) {
  return error_of(kHeader + "2023-11-16 18:17:03.9799600,4808,10\n" + row + "\n");
}

TEST(AzureTrace, ReturnsTimesSinceFirstRowAndLengths) {
  const auto rows = read(kHeader +
                         "2023-11-16 18:17:03.9799600,4808,10\n"
                         "2023-11-16 18:17:04.0319600,3180,8\n"
                         "2023-11-16 18:17:05,7,2147483647\n");
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ(rows->at(0).at, Duration{});
  EXPECT_EQ(rows->at(0).prompt_tokens, 4808);
  EXPECT_EQ(rows->at(0).answer_tokens, 10);
  EXPECT_EQ(rows->at(1).at, nanoseconds(52'000'000));
  EXPECT_EQ(rows->at(1).prompt_tokens, 3180);
  EXPECT_EQ(rows->at(2).at, nanoseconds(1'020'040'000));
  EXPECT_EQ(rows->at(2).answer_tokens, 2147483647);
}

TEST(AzureTrace, TakesEitherEndOfLineAndALastLineWithoutOne) {
  const std::string lf = kHeader + "2023-11-16 18:17:03.5,4,1\n2023-11-16 18:17:04.5,3,8";
  std::string crlf;
  for (const char c : lf) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  for (const auto& content : {lf, lf + "\n", crlf, crlf + "\r\n"}) {
    const auto rows = read(content);
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    ASSERT_EQ(rows->size(), 2u);
    EXPECT_EQ(rows->at(1).at, std::chrono::seconds(1));
    EXPECT_EQ(rows->at(1).answer_tokens, 8);
  }
}

TEST(AzureTrace, SortsByTimeAndKeepsTheOrderOfEqualTimes) {
  const auto rows = read(kHeader +
                         "2023-11-16 18:17:05,1,1\n"
                         "2023-11-16 18:17:03,2,1\n"
                         "2023-11-16 18:17:05,3,1\n"
                         "2023-11-16 18:17:04,4,1\n");
  ASSERT_TRUE(rows.ok());
  std::vector<int> prompts;
  for (const TraceRow& row : *rows) prompts.push_back(row.prompt_tokens);
  EXPECT_EQ(prompts, (std::vector<int>{2, 4, 1, 3}));
  EXPECT_EQ(rows->front().at, Duration{});
  EXPECT_EQ(rows->back().at, std::chrono::seconds(2));
}

TEST(AzureTrace, CountsOverDaysMonthsAndYears) {
  EXPECT_EQ(between("2023-11-16 23:59:59.9999999", "2023-11-17 00:00:00"), nanoseconds(100));
  EXPECT_EQ(between("2023-11-30 23:00:00", "2023-12-01 01:00:00"), hours(2));
  EXPECT_EQ(between("2023-02-28 12:00:00", "2023-03-01 12:00:00"), hours(24));
  EXPECT_EQ(between("2024-02-28 12:00:00", "2024-03-01 12:00:00"), hours(48));  // a leap year
  EXPECT_EQ(between("2023-12-31 23:59:58", "2024-01-01 00:00:01"), std::chrono::seconds(3));
  EXPECT_EQ(between("1970-01-01 00:00:00", "2261-12-31 00:00:00"), hours(24 * 106650));
}

TEST(AzureTrace, RefusesABadRowByItsLine) {
  const std::string time = "2023-11-16 18:17:04";
  EXPECT_EQ(row_error(time + ",1"), "trace.csv:3: \"" + time + ",1\" does not have 3 fields");
  EXPECT_EQ(row_error(time + ",1,2,3"),
            "trace.csv:3: \"" + time + ",1,2,3\" does not have 3 fields");
  EXPECT_EQ(row_error(""), "trace.csv:3: \"\" does not have 3 fields");
  for (const std::string count : {"0", "-1", "", "x", "1x", " 1", "1.5", "2147483648"}) {
    const std::string why = " is \"" + count + "\", which is not a whole number of at least 1";
    EXPECT_EQ(row_error(time + "," + count + ",1"), "trace.csv:3: ContextTokens" + why);
    EXPECT_EQ(row_error(time + ",1," + count), "trace.csv:3: GeneratedTokens" + why);
  }
  for (const std::string bad :
       {"", "18:17:04", "2023-11-16T18:17:04", "2023-13-01 00:00:00", "2023-00-01 00:00:00",
        "2023-02-29 00:00:00", "2023-11-31 00:00:00", "2023-11-16 24:00:00", "2023-11-16 23:60:00",
        "2023-11-16 23:59:60", "2023-11-16 23:59:5", "2023-11-16 23:59:59.",
        "2023-11-16 23:59:59.-1", "2023-11-16 23:59:59.1234567890", "2023-11-16 23:59:59Z",
        "1969-12-31 00:00:00", "2262-01-01 00:00:00"})
    EXPECT_EQ(row_error(bad + ",1,1"), "trace.csv:3: TIMESTAMP is \"" + bad +
                                           "\", which is not of the form "
                                           "2023-11-16 18:17:03.9799600");
}

TEST(AzureTrace, RefusesAFileWithoutHeaderOrRows) {
  const std::string header = "trace.csv:1: the header is not " + kHeader.substr(0, 39);
  EXPECT_EQ(error_of(""), header);
  EXPECT_EQ(error_of("2023-11-16 18:17:03.9799600,4808,10\n"), header);
  EXPECT_EQ(error_of("TIMESTAMP,GeneratedTokens,ContextTokens\n"), header);
  EXPECT_EQ(error_of(kHeader), "trace.csv:2: there is no row after the header");
  const auto missing = read_azure_trace("/no/such/trace.csv");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace valora::sim
