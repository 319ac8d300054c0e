// A user: whoever sends one of the server's API keys, with rights and quotas (docs/users.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace valora::server {

struct User {
  std::string name;
  std::string key;
  // Shell patterns of the models that it may ask; absent: any.
  std::optional<std::vector<std::string>> models;
  std::vector<std::string> loads;  // of the adapters that it may load and unload
  // Applications that its requests may belong to, the first by default; absent: any, or none.
  std::optional<std::vector<std::string>> applications = {};
  // The highest priority (lowest number) of its requests; absent: the default of each.
  std::optional<int> priority = {};
  // 429 beyond; absent: no limit.
  std::optional<int> max_requests;    // under way: waiting or being answered
  std::optional<int64_t> max_tokens;  // that the requests under way may still generate at most
  // Instead of the server's; absent: as the server's.
  std::optional<bool> special_tokens_in_content = {};
  double share = 1;  // of the engine's time, while several users' requests wait; above 0
};

}  // namespace valora::server
