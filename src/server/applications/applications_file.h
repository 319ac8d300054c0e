// Reads the file of `valora serve --applications`: YAML or JSON (docs/applications.md).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/applications/application.h"

namespace valora::server {

// Returns at least one application. Names are distinct, and no two applications share a model.
// Errors: kInvalidArgument with "FILE:LINE: …" and the key, or those of read_file().
Result<std::vector<Application>> read_applications(const std::string& path);

}  // namespace valora::server
