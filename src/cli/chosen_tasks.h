// Selects the tasks of a tasks file that a command runs on.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::cli {

// The tasks in `names`, in that order; all tasks if it is empty. An unknown name is
// kInvalidArgument; the message lists the file's tasks.
Result<std::vector<generator::Task>> chosen_tasks(const std::string& path,
                                                  const std::vector<std::string>& names);

}  // namespace valora::cli
