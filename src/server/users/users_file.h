// Reads the file of `valora serve --users`: YAML or JSON (docs/users.md).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/users/user.h"

namespace valora::server {

// Returns at least one user, with distinct names and keys. Errors: kInvalidArgument with
// "FILE:LINE: …" and the key of the entry, never an API key; or those of read_file().
Result<std::vector<User>> read_users(const std::string& path);

}  // namespace valora::server
