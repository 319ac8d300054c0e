#include "server/http/http.h"

#include <gtest/gtest.h>

namespace valora::server {
namespace {

TEST(PercentDecode, DecodesEscapesAndRefusesMalformedOnes) {
  EXPECT_EQ(percent_decode("/v1/models/a%2Fb%20c"), "/v1/models/a/b c");
  EXPECT_EQ(percent_decode("%c3%A9"), "\xC3\xA9");
  EXPECT_EQ(percent_decode(""), "");
  for (const char* text : {"%", "%2", "a%zz", "%-1"})
    EXPECT_EQ(percent_decode(text), std::nullopt) << text;
}

TEST(RequestId, KeepsPrintableIdsAndReplacesOthers) {
  EXPECT_EQ(request_id_from("my-id_1"), "my-id_1");
  const std::string long_id(129, 'a');
  for (const std::string_view bad : {"", "two words", "caf\xC3\xA9", long_id.c_str()}) {
    const std::string id = request_id_from(bad);
    EXPECT_EQ(id.size(), 32u);
    EXPECT_NE(id, request_id_from(bad));
  }
}

TEST(HttpRequest, FindsHeadersCaseInsensitively) {
  HttpRequest request;
  request.headers = {{"Content-Type", "text/plain"}, {"X-A", "1"}, {"x-a", "2"}};
  EXPECT_EQ(request.header("content-TYPE"), "text/plain");
  EXPECT_EQ(request.header("x-a"), "1");
  EXPECT_EQ(request.header("x-b"), "");
}

}  // namespace
}  // namespace valora::server
