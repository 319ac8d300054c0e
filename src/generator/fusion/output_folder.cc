// The output folder of a fusion: what may be replaced, and in which order adapters are added and
// removed, so that the manifest always names complete adapters that belong together.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/files/file.h"
#include "base/files/write_file.h"
#include "base/json/json.h"
#include "generator/fusion/fusion.h"

namespace valora::generator {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestAdapter = size_t{16} << 30;

// The tasks of a manifest, by name; empty if there is no file.
Result<Json> manifest_tasks(const std::string& path) {
  if (!file_exists(path)) return Json::object();
  VALORA_TRY(json, read_json_file(path));
  if (!json.is_object() || !json.contains("tasks") || !json["tasks"].is_object())
    return unprocessable(path + " is not a manifest of tasks; remove it to start over", path);
  return json["tasks"];
}

// True if the two folders contain the same files.
bool are_equal(const fs::path& a, const fs::path& b) {
  const auto count = [](const fs::path& folder) {
    std::error_code ignored;
    return std::distance(fs::directory_iterator(folder, ignored), fs::directory_iterator());
  };
  if (count(a) != count(b)) return false;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(a, fault)) {
    const auto one = read_file(entry.path().string(), kLargestAdapter),
               other = read_file((b / entry.path().filename()).string(), kLargestAdapter);
    if (!one.ok() || !other.ok() || *one != *other) return false;
  }
  return !fault;
}

}  // namespace

// The manifest is replaced as a whole, with only the tasks of this run.
Status Fusion::check_other_tasks(const std::vector<Task>& tasks) const {
  if (options_.replace) return {};
  const std::string path = options_.output + "/manifest.json";
  VALORA_TRY(there, manifest_tasks(path));
  std::vector<std::string> left_out;
  for (const auto& [name, entry] : there.items())
    if (std::ranges::find(tasks, name, &Task::name) == tasks.end()) left_out.push_back(name);
  if (left_out.empty()) return {};
  return Error{ErrorCode::kConflict,
               fmt::format("{} has tasks that this run leaves out ({}): name them with --task, too "
                           "(what they learnt is reused), choose another --output, or drop them "
                           "with --replace",
                           path, fmt::join(left_out, ", ")),
               "output"};
}

Status Fusion::prepare_folder(const std::vector<Task>& tasks) const {
  VALORA_CHECK(check_other_tasks(tasks));
  std::error_code fault;
  if (options_.restart)
    for (const char* name : {"/state.json", "/attempts"})
      if (!fault) fs::remove_all(options_.output + name, fault);
  if (!fault) fs::create_directories(options_.output + "/attempts", fault);
  if (fault) return unprocessable(options_.output + ": " + fault.message(), "output");
  return {};
}

// The names of the folders in adapters/ that the manifest refers to.
std::set<std::string> Fusion::folders_in_use() const {
  std::set<std::string> names;
  const auto there = manifest_tasks(options_.output + "/manifest.json");
  if (!there.ok()) return names;
  for (const auto& [task, entry] : there->items())
    if (entry.is_object() && entry.contains("adapter") && entry["adapter"].is_string())
      names.insert((fs::path(entry["adapter"].get<std::string>()) / "").parent_path().filename());
  return names;
}

// Writes the adapter without touching those of the current manifest: to adapters/NAME, or to
// NAME-r2 and so on if the manifest uses that name. An identical adapter is reused. Returns the
// folder's name.
Result<std::string> Fusion::install(const OpenAdapter& adapter,
                                    const std::vector<const TaskData*>& tasks) const {
  VALORA_TRY(shape, runner_->shape_of(tasks, adapter.rank, adapter.invocation));
  VALORA_TRY(parameters, runner_->load(shape, folder_of(adapter.lineage), 0));
  const std::string root = options_.output + "/adapters/", staged = root + adapter.name + ".new";
  VALORA_CHECK(runner_->write(staged, parameters, tasks,
                              options_.bfloat16 && model_->loaded.dtype == at::kBFloat16));
  const std::set<std::string> in_use = folders_in_use();
  std::string free;
  for (size_t revision = 1; revision <= in_use.size() + 1; ++revision) {
    const std::string name =
        revision == 1 ? adapter.name : fmt::format("{}-r{}", adapter.name, revision);
    if (!in_use.contains(name)) {
      if (free.empty()) free = name;
    } else if (are_equal(staged, root + name)) {
      std::error_code ignored;
      fs::remove_all(staged, ignored);
      return name;
    }
  }
  VALORA_CHECK(move_folder(staged, root + free));
  return free;
}

// Removes adapters that the manifest no longer refers to.
Status Fusion::drop_other_adapters() const {
  const std::set<std::string> in_use = folders_in_use();
  if (in_use.empty()) return {};
  std::error_code fault;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(options_.output + "/adapters", fault))
    if (!in_use.contains(entry.path().filename().string())) others.push_back(entry.path());
  for (const fs::path& folder : others)
    if (!fault) fs::remove_all(folder, fault);
  return fault ? Status(unprocessable(options_.output + "/adapters: " + fault.message(), "output"))
               : Status();
}

}  // namespace valora::generator
