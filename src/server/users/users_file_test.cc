#include "server/users/user.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"

namespace valora::server {
namespace {

using ::testing::HasSubstr;

Result<std::vector<User>> read(const std::string& text) {
  const valora::testing::TempDir dir;
  return read_users(dir.write("users.yaml", text));
}

TEST(UsersFile, ReadsRightsAndQuotas) {
  const auto users = read(R"(users:
  - name: cameras
    key: sk-cameras
    models: [street, "digits*"]
    loads: ["mine-*"]
    applications: [video, street]
    priority: -3
    max_requests: 8
    max_tokens: 4096
    special_tokens_in_content: false
    share: 2
  - {name: all, key: sk-everything}
)");
  ASSERT_TRUE(users.ok()) << users.error().message;
  ASSERT_EQ(users->size(), 2u);
  const User& first = users->front();
  EXPECT_EQ(first.models, (std::vector<std::string>{"street", "digits*"}));
  EXPECT_EQ(first.loads, std::vector<std::string>{"mine-*"});
  EXPECT_EQ(first.applications, (std::vector<std::string>{"video", "street"}));
  EXPECT_EQ(first.priority, -3);
  EXPECT_FALSE(users->back().applications || users->back().priority);
  EXPECT_EQ(first.max_requests, 8);
  EXPECT_EQ(first.max_tokens, 4096);
  EXPECT_EQ(first.special_tokens_in_content, false);
  EXPECT_FALSE(users->back().special_tokens_in_content);
  EXPECT_EQ(first.share, 2);
  EXPECT_FALSE(users->back().models || users->back().max_requests);
  EXPECT_TRUE(users->back().loads.empty());
}

TEST(UsersFile, ErrorsNameTheLineButNeverTheKey) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"users: []", "at least one user"},
      {"other: 1", "other"},
      {"users:\n  - name: a\n    key: short", ":3: "},
      {"users:\n  - name: a b\n    key: sk-secret-1", ":2: "},
      {"users:\n  - {name: a, key: sk-secret-1}\n  - {name: a, key: sk-secret-2}", "another user"},
      {"users:\n  - {name: a, key: sk-secret-1}\n  - {name: b, key: sk-secret-1}", "\"a\""},
      {"users:\n  - {name: a, key: sk-secret-1, share: 0}", "share"},
      {"users:\n  - {name: a, key: sk-secret-1, special_tokens_in_content: 3}",
       "special_tokens_in_content"},
      {"users:\n  - {name: a, key: sk-secret-1, max_requests: 0}", "max_requests"},
      {"users:\n  - {name: a, key: sk-secret-1, priority: high}", "priority"},
      {"users:\n  - {name: a, key: sk-secret-1, applications: []}",
       "\"applications\" must not be empty"},
      {"users:\n  - {name: a, key: sk-secret-1, model: [b]}", "models"},
  };
  for (const auto& [text, part] : cases) {
    const auto users = read(text);
    ASSERT_FALSE(users.ok()) << text;
    EXPECT_THAT(users.error().message, HasSubstr(part)) << text;
    EXPECT_THAT(users.error().message, ::testing::Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace valora::server
