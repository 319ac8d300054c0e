// The tasks of a tasks file that a command is about.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::cli {

// All of them, or those of `names`, in that order. A name that the file does not have is an error
// that lists those it has.
Result<std::vector<generator::Task>> chosen_tasks(const std::string& path,
                                                  const std::vector<std::string>& names);

}  // namespace valora::cli
