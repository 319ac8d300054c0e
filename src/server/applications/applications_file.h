// The file of `valora serve --applications`: YAML, or the same as JSON (docs/applications.md).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/applications/application.h"

namespace valora::server {

// At least one application, with distinct names; no two have a model in common. Errors:
// kInvalidArgument with "FILE:LINE: …" and the key, or those of read_file().
Result<std::vector<Application>> read_applications(const std::string& path);

}  // namespace valora::server
