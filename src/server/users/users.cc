#include "server/users/users.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <string>

namespace valora::server {
namespace {

bool matches(const std::vector<std::string>& patterns, std::string_view name) {
  const std::string text(name);
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
  });
}

Error over_quota(const User& user, const std::string& what) {
  return {ErrorCode::kQueueFull,
          fmt::format("the user `{}` has {} under way; try again later", user.name, what),
          {}};
}

}  // namespace

bool ServedUser::may_ask(std::string_view model) const {
  return !settings.models || matches(*settings.models, model);
}

bool ServedUser::may_load(std::string_view adapter) const {
  return matches(settings.loads, adapter);
}

bool ServedUser::may_name(std::string_view application) const {
  return !settings.applications ||
         std::ranges::find(*settings.applications, application) != settings.applications->end();
}

Status ServedUser::take(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  if (settings.max_requests && requests_ >= *settings.max_requests)
    return over_quota(settings, fmt::format("{} requests", requests_));
  if (settings.max_tokens && tokens_ + tokens > *settings.max_tokens)
    return over_quota(settings, fmt::format("{} of its {} tokens, and this request may take {}",
                                            tokens_, *settings.max_tokens, tokens));
  ++requests_;
  tokens_ += tokens;
  return {};
}

void ServedUser::give_back(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  --requests_;
  tokens_ -= tokens;
}

Status UserRequest::begin(ServedUser* user, int64_t tokens) {
  if (user == nullptr) return {};
  VALORA_CHECK(user->take(tokens));
  user_ = user;
  tokens_ = tokens;
  return {};
}

void UserRequest::end() {
  if (ServedUser* user = std::exchange(user_, nullptr)) user->give_back(tokens_);
}

Users::Users(const std::vector<User>& users) {
  for (const User& user : users) users_.emplace_back(user);
}

ServedUser* Users::find(std::string_view key) const {
  ServedUser* found = nullptr;
  for (ServedUser& user : users_)
    if (same_secret(key, user.settings.key)) found = &user;
  return found;
}

const ServedUser* Users::named(std::string_view name) const {
  const auto found = std::ranges::find_if(
      users_, [&](const ServedUser& user) { return user.settings.name == name; });
  return found == users_.end() ? nullptr : &*found;
}

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned char difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference |=
        static_cast<unsigned char>(given[i] ^ (secret.empty() ? 1 : secret[i % secret.size()]));
  return difference == 0;
}

}  // namespace valora::server
