// Reads the sources of a task's samples from its entry in the tasks file. Torch-free.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "generator/data/task.h"
#include "yaml/fields.h"

namespace valora::generator {

// Reads a path or {format, path, media_root, limit}; nullopt if the key is absent. Relative paths
// start at the folder of fields.file(). Returned paths are absolute and exist (else kNotFound). The
// format must fit the task's type.
Result<std::optional<DataSource>> read_source(const yaml::Fields& fields, std::string_view key,
                                              TaskType type);

// Reads "teacher"; nullopt if it is absent. Its keys must fit its kind, and its kind must fit the
// task's type.
Result<std::optional<TeacherSource>> read_teacher(const yaml::Fields& fields, TaskType type);

}  // namespace valora::generator
