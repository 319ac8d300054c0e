#include "server/batches/batch_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"

namespace valora::server {
namespace {

using ::testing::HasSubstr;

std::string line(const std::string& id, const std::string& body = "{}") {
  return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/completions","body":)" + body +
         "}";
}

LineFault fault_of(const std::string& text, std::string_view endpoint = {}) {
  auto parsed = parse_batch_line(text, endpoint);
  const auto* fault = std::get_if<LineFault>(&parsed);
  return fault ? *fault : LineFault{"none", "", ""};
}

TEST(BatchLines, BodyIsGivenAsItIsWritten) {
  for (const std::string body : {R"({"z": 1, "a": 1.50, "s": "} , \" {", "l": [{"body": 2}, "]"]})",
                                 "{}", R"({"body":{"body":"x"}})"}) {
    const auto parsed =
        parse_batch_line(R"( { "body" : )" + body +
                             R"( , "url":"/v1/completions", "method":"POST","custom_id":"a\"b"} )",
                         "/v1/completions");
    ASSERT_TRUE(std::holds_alternative<BatchLine>(parsed)) << std::get<1>(parsed).message;
    EXPECT_EQ(std::get<BatchLine>(parsed).body, body);
    EXPECT_EQ(std::get<BatchLine>(parsed).custom_id, "a\"b");
  }
  const auto escaped = parse_batch_line(
      R"({"custom_id":"a","method":"POST","url":"/v1/completions","b\u006fdy":{"x":1}})", "");
  ASSERT_TRUE(std::holds_alternative<BatchLine>(escaped));
  EXPECT_EQ(std::get<BatchLine>(escaped).body, R"({"x":1})");
}

TEST(BatchLines, FaultsNameTheKey) {
  EXPECT_EQ(fault_of("{").code, "invalid_json_line");
  EXPECT_EQ(fault_of("[1]").code, "invalid_json_line");
  EXPECT_EQ(fault_of(R"({"method":"POST"})").param, "custom_id");
  EXPECT_EQ(fault_of(R"({"custom_id":7})").code, "invalid_type");
  EXPECT_EQ(fault_of(line("")).code, "invalid_custom_id");
  EXPECT_EQ(fault_of(line(std::string(513, 'a'))).code, "invalid_custom_id");
  EXPECT_EQ(fault_of(R"({"custom_id":"a","method":"GET","url":"/v1/completions","body":{}})").code,
            "invalid_method");
  EXPECT_EQ(fault_of(R"({"custom_id":"a","method":"POST","url":"/v1/models","body":{}})").code,
            "invalid_url");
  EXPECT_THAT(fault_of(line("a"), "/v1/embeddings").message,
              HasSubstr("the batch's endpoint is /v1/embeddings"));
  EXPECT_EQ(fault_of(R"({"custom_id":"a","method":"POST","url":"/v1/completions"})").param, "body");
  EXPECT_EQ(fault_of(line("a", "[]")).code, "invalid_type");
  EXPECT_EQ(fault_of(line("a", R"({"stream":true})")).param, "body.stream");
  EXPECT_EQ(fault_of(line("a", R"({"stream":false})")).code, "none");
}

class BatchInputTest : public ::testing::Test {
 protected:
  BatchInput read(
      const std::string& text, size_t most = 100,
      const std::function<bool(const std::string&)>& done = [](const std::string&) {
        return false;
      }) {
    file_.emplace(*InputFile::open(dir_.write("in.jsonl", text)));
    return *read_batch_input(*file_, "/v1/completions", most, done);
  }

  valora::testing::TempDir dir_;
  std::optional<InputFile> file_;
};

TEST_F(BatchInputTest, RowsAreFoundAgainAtTheirPlaces) {
  const BatchInput input = read(line("a") + "\r\n\n" + line("b") + "\n" + line("c"), 100,
                                [](const std::string& id) { return id == "b"; });
  EXPECT_TRUE(input.faults.empty());
  EXPECT_EQ(input.total, 3u);
  ASSERT_EQ(input.rows.size(), 2u);
  EXPECT_EQ(*line_at(*file_, input.rows[0]), line("a"));
  EXPECT_EQ(*line_at(*file_, input.rows[1]), line("c"));
}

TEST_F(BatchInputTest, FaultsHaveTheNumbersOfTheirLines) {
  const BatchInput input = read(line("a") + "\n{\n\n" + line("a") + "\n");
  ASSERT_EQ(input.faults.size(), 2u);
  EXPECT_EQ(input.faults[0].line, 2u);
  EXPECT_EQ(input.faults[1].line, 4u);
  EXPECT_EQ(input.faults[1].code, "duplicate_custom_id");
}

TEST_F(BatchInputTest, EmptyAndTooLongInputsAreFaultsOfTheFile) {
  EXPECT_EQ(read("\n \n").faults.at(0).code, "empty_file");
  const BatchInput input = read(line("a") + "\n" + line("b") + "\n" + line("c"), 2);
  ASSERT_EQ(input.faults.size(), 1u);
  EXPECT_EQ(input.faults[0].code, "too_many_requests");
  EXPECT_EQ(input.faults[0].line, 0u);
}

TEST_F(BatchInputTest, LinesLongerThanAReadAreWhole) {
  const std::string text = line("a", R"({"prompt":")" + std::string(3 << 20, 'x') + "\"}");
  const BatchInput input = read(text + "\n" + line("b") + "\n");
  ASSERT_EQ(input.rows.size(), 2u);
  EXPECT_EQ(*line_at(*file_, input.rows[0]), text);
  EXPECT_EQ(*line_at(*file_, input.rows[1]), line("b"));
}

}  // namespace
}  // namespace valora::server
