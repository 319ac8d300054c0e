#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "generator/data/media_files.h"
#include "generator/data/sample_readers.h"

namespace valora::generator {
namespace {

constexpr int kMaxFolderDepth = 32;  // nested folders

size_t limit_of(const DataSource& source) {
  return source.limit ? static_cast<size_t>(*source.limit) : std::numeric_limits<size_t>::max();
}

Sample sample_of(const std::string& path, Medium::Kind kind) {
  Sample sample;
  sample.origin = path;
  sample.media.push_back({kind, {path}});
  return sample;
}

struct ClassFolder {
  std::string label;
  std::vector<std::string> files;  // absolute
};

Result<ClassFolder> read_class(const std::string& folder, const std::string& label,
                               Medium::Kind kind) {
  ClassFolder found{label, {}};
  const std::string path = folder + "/" + label;
  if (!is_folder(path))
    return invalid(path + " is not a folder: only class folders may be here", path);
  VALORA_TRY(names, names_in(path));
  for (const std::string& name : names) {
    if (!is_medium(name, kind) || is_folder(path + "/" + name))
      return invalid(fmt::format("{}/{} is not {}", path, name, extensions_of(kind)), path);
    VALORA_TRY(file, find_medium(path, name));
    found.files.push_back(std::move(file));
  }
  if (found.files.empty())
    return invalid(fmt::format("{} is empty: the class {} has no sample", path, label), path);
  return found;
}

Status collect(const std::string& folder, Medium::Kind kind, int depth,
               std::vector<std::string>& files) {
  if (depth > kMaxFolderDepth) return invalid(folder + " is nested too deep", folder);
  VALORA_TRY(names, names_in(folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    if (is_folder(path)) {
      VALORA_CHECK(collect(path, kind, depth + 1, files));
      continue;
    }
    if (!is_medium(name, kind))
      return invalid(fmt::format("{} is not {}", path, extensions_of(kind)), path);
    VALORA_TRY(file, find_medium(folder, name));
    files.push_back(std::move(file));
  }
  return {};
}

}  // namespace

Result<std::vector<Sample>> read_class_folders(const DataSource& source, const Task& task,
                                               const SampleChecks& checks) {
  const Medium::Kind kind = medium_kind(task.type);
  VALORA_TRY(labels, names_in(source.path));
  if (labels.empty())
    return invalid(source.path + " is empty: it has no class folder", source.path);
  std::vector<ClassFolder> classes;
  size_t longest = 0;
  for (const std::string& label : labels) {
    VALORA_TRY(found, read_class(source.path, label, kind));
    longest = std::max(longest, found.files.size());
    classes.push_back(std::move(found));
  }
  // Classes alternate, so that a limited source has samples of every class.
  std::vector<Sample> samples;
  for (size_t turn = 0; turn < longest; ++turn) {
    for (const ClassFolder& one : classes) {
      if (samples.size() >= limit_of(source)) return samples;
      if (turn >= one.files.size()) continue;
      Sample sample = sample_of(one.files[turn], kind);
      sample.labels = {one.label};
      const Status fits = checks.check(sample);
      if (!fits.ok())
        return invalid(sample.origin + ": " + fits.error().message, fits.error().param);
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

Result<std::vector<Sample>> read_media_folder(const DataSource& source, const Task& task) {
  const Medium::Kind kind = medium_kind(task.type);
  std::vector<std::string> files;
  VALORA_CHECK(collect(source.path, kind, 0, files));
  if (files.empty())
    return invalid(fmt::format("{} is empty: expected {}", source.path, extensions_of(kind)),
                   source.path);
  const SampleChecks checks(task, false);
  std::vector<Sample> samples;
  for (const std::string& file : files) {
    if (samples.size() >= limit_of(source)) break;
    Sample sample = sample_of(file, kind);
    const Status fits = checks.check(sample);
    if (!fits.ok()) return invalid(file + ": " + fits.error().message, fits.error().param);
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace valora::generator
