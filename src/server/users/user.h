// A user: the holder of one of the server's API keys, with rights and quotas (docs/users.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::server {

struct User {
  std::string name;
  std::string key;
  // Shell patterns of the models that the user may use; nullopt: any.
  std::optional<std::vector<std::string>> models;
  std::vector<std::string> loads;  // patterns of the adapters that the user may load and unload
  // Applications that the user's requests may belong to, the first by default; nullopt: any, or
  // none.
  std::optional<std::vector<std::string>> applications = {};
  // The highest priority (lowest number) of the user's requests; nullopt: the default of each
  // request.
  std::optional<int> priority = {};
  // Answered with 429 when exceeded; nullopt: no limit.
  std::optional<int> max_requests;    // in progress: waiting or being answered
  std::optional<int64_t> max_tokens;  // that the requests in progress may still generate at most
  // Overrides the server's setting; nullopt: the server's applies.
  std::optional<bool> special_tokens_in_content = {};
  double share = 1;  // of the engine's time while several users' requests wait; above 0
};

// Reads the file of `valora serve --users`: YAML or JSON (docs/users.md). Returns at least one
// user, with distinct names and keys. Errors: kInvalidArgument with "FILE:LINE: …" and the key of
// the entry, never an API key; or those of read_file().
Result<std::vector<User>> read_users(const std::string& path);

}  // namespace valora::server
