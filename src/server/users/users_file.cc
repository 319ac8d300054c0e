#include "server/users/user.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/files/file.h"
#include "base/text/strings.h"
#include "yaml/fields.h"

namespace valora::server {
namespace {

constexpr yaml::Limits kUsersLimits;
constexpr size_t kLongestUserName = 128;
constexpr size_t kShortestKey = 8;
constexpr double kHighestUserShare = 1000;

Status check_user_name(const yaml::Fields& fields, const std::string& name) {
  const bool fits = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7F; });
  if (fits && name.size() <= kLongestUserName) return {};
  return fields.error("name", fmt::format("must have up to {} printable ASCII characters without "
                                          "spaces",
                                          kLongestUserName));
}

Status check_key(const yaml::Fields& fields, const std::string& key) {
  const bool fits = std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7F; });
  if (fits && key.size() >= kShortestKey) return {};
  return fields.error("key", fmt::format("must have at least {} printable ASCII characters without "
                                         "spaces",
                                         kShortestKey));
}

Result<User> read_user(const yaml::Fields& fields) {
  User out;
  VALORA_TRY(name, fields.required_text("name"));
  VALORA_CHECK(check_user_name(fields, name));
  VALORA_TRY(key, fields.required_text("key"));
  VALORA_CHECK(check_key(fields, key));
  VALORA_TRY(models, fields.texts("models"));
  VALORA_TRY(loads, fields.texts("loads"));
  VALORA_TRY(applications, fields.texts("applications"));
  VALORA_TRY(priority, fields.integer("priority", INT32_MIN, INT32_MAX));
  VALORA_TRY(max_requests, fields.integer("max_requests", 1, INT32_MAX));
  VALORA_TRY(max_tokens, fields.integer("max_tokens", 1, INT64_MAX));
  VALORA_TRY(special_tokens, fields.flag("special_tokens_in_content"));
  VALORA_TRY(share, fields.number("share", 0, kHighestUserShare));
  if (share && *share == 0) return fields.error("share", "must be above 0; leave it out for 1");
  out.name = std::move(name);
  out.key = std::move(key);
  if (fields.find("models")) out.models = std::move(models);
  out.loads = std::move(loads);
  if (!applications.empty()) out.applications = std::move(applications);
  if (priority) out.priority = static_cast<int>(*priority);
  if (max_requests) out.max_requests = static_cast<int>(*max_requests);
  out.max_tokens = max_tokens;
  out.special_tokens_in_content = special_tokens;
  out.share = share.value_or(1);
  return out;
}

Status check_distinct(const yaml::Fields& fields, const User& user,
                      const std::vector<User>& others) {
  for (const User& other : others) {
    if (other.name == user.name)
      return fields.error("name",
                          fmt::format("is \"{}\", which another user already has", user.name));
    if (other.key == user.key)
      return fields.error("key", fmt::format("is also the key of the user \"{}\"", other.name));
  }
  return {};
}

}  // namespace

Result<std::vector<User>> read_users(const std::string& path) {
  VALORA_TRY(text, read_file(path, kUsersLimits.max_bytes));
  VALORA_TRY(root, yaml::parse(text, path, kUsersLimits));
  VALORA_TRY(fields, yaml::Fields::open(path, root, "", {"users"}));
  const yaml::Node* list = fields.find("users");
  if (!list) return fields.error("users", "is missing");
  if (list->kind != yaml::Node::Kind::kList || list->children.empty())
    return fields.error("users", "must be a list of at least one user");
  std::vector<User> users;
  for (const yaml::Node& node : list->children) {
    VALORA_TRY(entry, yaml::Fields::open(
                          path, node, "",
                          {"name", "key", "models", "loads", "applications", "priority",
                           "max_requests", "max_tokens", "special_tokens_in_content", "share"}));
    VALORA_TRY(user, read_user(entry));
    VALORA_CHECK(check_distinct(entry, user, users));
    users.push_back(std::move(user));
  }
  return users;
}

}  // namespace valora::server
