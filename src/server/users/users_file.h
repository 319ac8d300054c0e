// The file of `valora serve --users`: YAML, or the same as JSON (docs/users.md).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/users/user.h"

namespace valora::server {

// At least one user, with distinct names and keys. Errors: kInvalidArgument with "FILE:LINE: …" and
// the key of the file, never an API key; or those of read_file().
Result<std::vector<User>> read_users(const std::string& path);

}  // namespace valora::server
