// The server's users and the quotas that their running requests take. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/users/user.h"

namespace valora::server {

class ServedUser {
 public:
  explicit ServedUser(User user) : settings(std::move(user)) {}

  const User settings;

  bool may_ask(std::string_view model) const;
  bool may_load(std::string_view adapter) const;
  bool may_name(std::string_view application) const;

  // Counts a request; kQueueFull, and not counted, if it exceeds a quota.
  Status take(int64_t tokens);
  void give_back(int64_t tokens);

 private:
  std::mutex mutex_;
  int requests_ = 0;
  int64_t tokens_ = 0;
};

// One request of a user, who must outlive it; null: no particular user. Not thread-safe.
class UserRequest {
 public:
  UserRequest() = default;
  ~UserRequest() { end(); }
  UserRequest(const UserRequest&) = delete;
  UserRequest& operator=(const UserRequest&) = delete;

  // Called first, and only once.
  Status begin(ServedUser* user, int64_t tokens);
  void end();

 private:
  ServedUser* user_ = nullptr;  // null: none, or ended
  int64_t tokens_ = 0;
};

class Users {
 public:
  explicit Users(const std::vector<User>& users);

  bool empty() const { return users_.empty(); }
  // Null if the key belongs to nobody. Takes the same time for all wrong keys of one length.
  ServedUser* find(std::string_view key) const;
  // Null if there is no user of this name.
  const ServedUser* named(std::string_view name) const;

 private:
  mutable std::deque<ServedUser> users_;
};

// Compares in a time that does not reveal how much of the secret matches.
bool same_secret(std::string_view given, std::string_view secret);

}  // namespace valora::server
