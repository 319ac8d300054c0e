#include "generator/data/datasets.h"

#include <filesystem>
#include <system_error>

#include "generator/data/sample_readers.h"

namespace valora::generator {
namespace {

using Format = DataSource::Format;

Result<DataSource> with_absolute_path(DataSource source) {
  std::error_code fault;
  const std::string path =
      std::filesystem::absolute(source.path, fault).lexically_normal().string();
  if (source.path.empty() || fault || !std::filesystem::exists(path, fault))
    return not_found(source.path + " does not exist", source.path);
  source.path = path;
  return source;
}

}  // namespace

Result<std::vector<Sample>> read_samples(const DataSource& given, const Task& task) {
  VALORA_TRY(source, with_absolute_path(given));
  const SampleChecks checks(task, true);
  switch (source.format) {
    case Format::kJsonl: return read_jsonl(source, checks);
    case Format::kCoco: return read_coco(source, task, checks);
    case Format::kFolder: return read_class_folders(source, task, checks);
  }
  return internal("a data source of an unknown format");
}

Result<std::vector<Sample>> read_unlabelled(const DataSource& given, const Task& task) {
  VALORA_TRY(source, with_absolute_path(given));
  switch (source.format) {
    case Format::kJsonl: return read_jsonl(source, SampleChecks(task, false));
    case Format::kCoco:
      return invalid(source.path + ": a teacher's inputs are a folder or a JSONL file",
                     source.path);
    case Format::kFolder: return read_media_folder(source, task);
  }
  return internal("a data source of an unknown format");
}

}  // namespace valora::generator
