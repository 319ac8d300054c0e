#include "cli/adapters_at_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/json/json.h"
#include "cli/options/adapter_folders.h"
#include "cli/options/json_options.h"
#include "generator/data/manifest.h"
#include "server/base_names.h"

namespace valora::cli {
namespace {

using generator::Manifest;
using generator::ManifestEntry;

struct Planned {
  LoadAdapter load;
  std::string origin;        // for error messages
  bool may_be_name = false;  // whether load.path may be the name of a repository
};

Result<LoadAdapter> parse_lora_module(const std::string& text) {
  if (text.starts_with("{")) {
    VALORA_TRY(json, parse_json(text, "--lora-modules"));
    VALORA_TRY(name, required_field<std::string>(json, "name"));
    VALORA_TRY(path, required_field<std::string>(json, "path"));
    return LoadAdapter{.name = name, .path = path};
  }
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return invalid("--lora-modules takes NAME=PATH or {\"name\": …, \"path\": …}, not \"" + text +
                   "\"");
  return LoadAdapter{.name = text.substr(0, equals), .path = text.substr(equals + 1)};
}

std::optional<BoxNotation> notation_of(const std::optional<generator::BoxFormat>& boxes) {
  if (!boxes) return {};
  return BoxNotation{boxes->scale, boxes->labels};
}

using TaskNames = std::vector<std::string>;

std::map<std::string, TaskNames> tasks_by_folder(const Manifest& manifest) {
  std::map<std::string, TaskNames> tasks;
  for (const auto& [name, entry] : manifest.tasks) tasks[entry.adapter].push_back(name);
  return tasks;
}

// The name of a loaded folder: its task's name if it has only one, else the folder's name.
std::string first_name(const std::string& folder, const TaskNames& tasks) {
  return tasks.size() == 1 ? tasks.front() : std::filesystem::path(folder).filename().string();
}

void plan_folder(const Manifest& manifest, const std::string& folder, const TaskNames& tasks,
                 const std::string& file, std::vector<Planned>& plan) {
  const std::string first = first_name(folder, tasks);
  if (std::find(tasks.begin(), tasks.end(), first) == tasks.end())
    plan.push_back(
        {{.name = first, .path = folder}, fmt::format("the folder {} of {}", folder, file)});
  const auto plan_task = [&](const std::string& name) {
    const ManifestEntry& entry = manifest.tasks.at(name);
    LoadAdapter load{.name = name,
                     .head = entry.head.value_or(""),
                     .question = entry.prompt,
                     .form = {entry.labels, notation_of(entry.boxes)}};
    (name == first ? load.path : load.same_as) = name == first ? folder : first;
    plan.push_back({std::move(load), fmt::format("the task \"{}\" of {}", name, file)});
  };
  for (const std::string& name : tasks)
    if (name == first) plan_task(name);
  for (const std::string& name : tasks)
    if (name != first) plan_task(name);
}

Status plan_subfolders(const std::string& dir, std::vector<Planned>& plan) {
  VALORA_TRY(loads, adapter_folders(dir));
  for (LoadAdapter& load : loads) {
    std::string origin = "the folder " + load.path;
    plan.push_back({std::move(load), std::move(origin)});
  }
  return {};
}

Status plan_defaults(const std::string& text, std::vector<Planned>& plan,
                     server::DefaultAdapters& out) {
  std::vector<std::string> known;
  for (const Planned& planned : plan) known.push_back(planned.load.name);
  VALORA_TRY(defaults, read_default_mm_loras(text, known));
  for (DefaultMmLora& each : defaults) {
    (each.modality == "image" ? out.image : out.video) = each.name;
    if (!each.folder.empty())
      plan.push_back({{.name = each.name, .path = std::move(each.folder)},
                      "an adapter of --default-mm-loras",
                      true});
  }
  return {};
}

Status check_names(const std::vector<Planned>& plan, const std::vector<std::string>& base_names) {
  std::map<std::string, std::string> origins;
  for (const std::string& name : base_names) origins[name] = "the base model";
  for (const Planned& planned : plan) {
    if (!server::is_base_name(base_names, planned.load.name))
      VALORA_CHECK(server::check_not_base_name(base_names, planned.load.name));
    const auto [other, is_new] = origins.emplace(planned.load.name, planned.origin);
    if (!is_new)
      return invalid(fmt::format("the name \"{}\" is given twice: to {} and to {}",
                                 planned.load.name, other->second, planned.origin));
  }
  return {};
}

}  // namespace

Result<AdaptersAtStart> adapters_at_start(const AdapterSources& sources,
                                          const std::vector<std::string>& base_names,
                                          NamedFolders& folders) {
  std::vector<Planned> plan;
  for (const std::string& module : sources.lora_modules) {
    VALORA_TRY(load, parse_lora_module(module));
    plan.push_back({std::move(load), "an adapter of --lora-modules", true});
  }
  if (!sources.manifest.empty()) {
    VALORA_TRY(manifest, generator::read_manifest(sources.manifest));
    for (const auto& [folder, tasks] : tasks_by_folder(manifest))
      plan_folder(manifest, folder, tasks, sources.manifest, plan);
  }
  for (const std::string& dir : sources.lora_dirs) VALORA_CHECK(plan_subfolders(dir, plan));
  AdaptersAtStart out;
  VALORA_CHECK(plan_defaults(sources.default_mm_loras, plan, out.defaults));
  VALORA_CHECK(check_names(plan, base_names));
  for (Planned& planned : plan) {
    if (planned.may_be_name) {
      VALORA_TRY(path, folders.adapter(planned.load.path));
      planned.load.path = std::move(path);
    }
    out.loads.push_back(std::move(planned.load));
  }
  return out;
}

}  // namespace valora::cli
