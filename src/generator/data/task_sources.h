// Where a task's samples come from, read from its entry in the tasks file. Torch-free.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "generator/data/task.h"
#include "generator/data/yaml_fields.h"

namespace valora::generator {

// A path or {format, path, media_root, limit}; none where the key is absent. Relative paths start
// from the folder of fields.file(); paths come back absolute, of something that is there. The
// format must fit the task's type.
Result<std::optional<DataSource>> read_source(const YamlFields& fields, std::string_view key,
                                              TaskType type);

// "teacher"; none where it is absent. Its keys fit its kind, its kind the task's type.
Result<std::optional<TeacherSource>> read_teacher(const YamlFields& fields, TaskType type);

}  // namespace valora::generator
