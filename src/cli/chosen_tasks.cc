#include "cli/chosen_tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "generator/data/tasks_file.h"

namespace valora::cli {

Result<std::vector<generator::Task>> chosen_tasks(const std::string& path,
                                                  const std::vector<std::string>& names) {
  VALORA_TRY(all, generator::read_tasks(path));
  if (names.empty()) return all;
  std::vector<generator::Task> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(all, name, &generator::Task::name);
    if (found != all.end()) {
      chosen.push_back(*found);
      continue;
    }
    std::vector<std::string> known;
    for (const generator::Task& task : all) known.push_back(task.name);
    return invalid(fmt::format("{} has no task {}; it has {}", path, name, fmt::join(known, ", ")),
                   "task");
  }
  return chosen;
}

}  // namespace valora::cli
