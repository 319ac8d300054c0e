#include "server/batches/answer_rows.h"

#include <gtest/gtest.h>

#include "base/json/json.h"

namespace valora::server {
namespace {

TEST(AnswerRows, BodyIsThatOfTheResponse) {
  const std::string body = R"({"z":1,"a":[1.50,"ä"]})";
  const std::string row = answer_row("id \"1\"", "req-1", {.status = 200, .body = body});
  EXPECT_NE(row.find("\"body\":" + body + "}"), row.npos);
  const Json json = Json::parse(row);
  EXPECT_EQ(json["custom_id"], "id \"1\"");
  EXPECT_EQ(json["response"]["status_code"], 200);
  EXPECT_EQ(json["response"]["request_id"], "req-1");
  EXPECT_TRUE(json["error"].is_null());
  EXPECT_EQ(*custom_id_of(row), "id \"1\"");
}

TEST(AnswerRows, EachRowIsOneLine) {
  for (const char* body : {"{\n \"a\": 1\n}", "plain\ntext", ""}) {
    const std::string row = answer_row("a\nb", "r", {.status = 500, .body = body});
    EXPECT_EQ(row.find('\n'), row.size() - 1) << body;
    EXPECT_TRUE(Json::accept(row)) << row;
  }
}

TEST(AnswerRows, RowsThatWereNotAskedHaveAnErrorAndNoResponse) {
  const Json json = Json::parse(failure_row("a", "batch_expired", "too late"));
  EXPECT_TRUE(json["response"].is_null());
  EXPECT_EQ(json["error"]["code"], "batch_expired");
  EXPECT_FALSE(custom_id_of("{}").ok());
  EXPECT_FALSE(custom_id_of("{\"custom_id\":\"a").ok());
}

}  // namespace
}  // namespace valora::server
