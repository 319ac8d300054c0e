// tasks.yaml, or the same content as JSON (docs/tasks.md). Torch-free.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// Relative paths start at the file's folder. Errors are kInvalidArgument with "FILE:LINE: …" and
// the key: unknown keys and values, missing ones, a repeated name, a metric that does not fit the
// type, a floor outside 0 … 1, neither training data nor a teacher, no validation data. kNotFound:
// a path does not exist; quotes the file's "prepare" command if there is one.
Result<std::vector<Task>> read_tasks(const std::string& path);

}  // namespace valora::generator
