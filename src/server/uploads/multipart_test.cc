#include "server/uploads/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::server {
namespace {

using ::testing::HasSubstr;

std::string part(const std::string& disposition, const std::string& contents) {
  return "--b\r\nContent-Disposition: " + disposition + "\r\n\r\n" + contents + "\r\n";
}

TEST(Multipart, BoundaryIsReadFromTheContentType) {
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(boundary_of("Multipart/Form-Data; charset=utf-8; BOUNDARY=\"a b;c\""), "a b;c");
  for (const char* other :
       {"", "multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=a",
        "application/json", "multipart/form-data; boundary=\"a\r\nb\"", "multipart/form-data; ;;="})
    EXPECT_EQ(boundary_of(other), "") << other;
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=" + std::string(71, 'a')), "");
}

TEST(Multipart, PartsContainBytesBetweenBoundaries) {
  const std::string bytes = std::string("\r\n--c\0--", 8);  // resembles a boundary
  const std::string body =
      part("form-data; name=one", "") +
      part("form-data; filename=\"../../etc; name=x\"; name=\"t\\\"wo\"\r\nContent-Type: a/b",
           bytes) +
      "--b--\r\nepilogue";
  const auto parts = parse_form(body, "b");
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].name, "one");
  EXPECT_EQ((*parts)[0].contents, "");
  EXPECT_EQ((*parts)[1].name, "t\"wo");
  EXPECT_EQ((*parts)[1].contents, bytes);
}

TEST(Multipart, IncompleteBodyIsRefused) {
  const std::string whole = part("form-data; name=a", "text") + "--b--";
  ASSERT_TRUE(parse_form(whole, "b").ok());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_form(whole.substr(0, size), "b").ok()) << size;
  for (const std::string& refused :
       {part("form-data", "x") + "--b--", part("form-data; name=\"\"", "x") + "--b--",
        part("attachment; name=a", "x") + "--b--", "preamble\r\n" + whole,
        part("form-data; name=" + std::string(kMostPartHeaderBytes, 'a'), "x") + "--b--"})
    EXPECT_FALSE(parse_form(refused, "b").ok()) << refused.substr(0, 80);
  std::string many;
  for (size_t i = 0; i <= kMostFormParts; ++i) many += part("form-data; name=a", "");
  EXPECT_THAT(parse_form(many + "--b--", "b").error().message, HasSubstr("more than 32 parts"));
}

}  // namespace
}  // namespace valora::server
