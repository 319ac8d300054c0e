#include "generator/data/task_sources.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "generator/data/media_files.h"

namespace valora::generator {
namespace {

namespace fs = std::filesystem;
using Format = DataSource::Format;
using Kind = TeacherSource::Kind;
using Output = TeacherSource::Output;

constexpr int kLargestSide = 8192;  // of a teacher's pictures

std::string absolute_path(const yaml::Fields& fields, const std::string& path) {
  std::error_code fault;
  const fs::path folder = fs::absolute(fields.file(), fault).parent_path();
  return (folder / path).lexically_normal().string();
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

enum class Wanted { kFile, kFolder, kEither };

Result<std::string> read_path(const yaml::Fields& fields, std::string_view key, Wanted wanted) {
  VALORA_TRY(text, fields.required_text(key));
  const std::string path = absolute_path(fields, text);
  const bool file = is_file(path), folder = is_folder(path);
  if (!file && !folder) {
    Error missing = fields.error(key, fmt::format("leads to {}, which does not exist", path));
    missing.code = ErrorCode::kNotFound;
    return missing;
  }
  if (wanted == Wanted::kFile && !file)
    return fields.error(key, fmt::format("leads to {}, a folder", path));
  if (wanted == Wanted::kFolder && !folder)
    return fields.error(key, fmt::format("leads to {}, a file", path));
  return path;
}

Result<Format> guess_format(const yaml::Fields& fields, std::string_view key,
                            const std::string& path) {
  if (is_folder(path)) return Format::kFolder;
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".jsonl") return Format::kJsonl;
  if (extension == ".json") return Format::kCoco;
  return fields.error(
      key, fmt::format("leads to {}: neither a folder nor .jsonl nor .json, so give its \"format\"",
                       path));
}

Result<Format> parse_format(const yaml::Fields& fields, std::string_view name) {
  if (name == "jsonl") return Format::kJsonl;
  if (name == "coco") return Format::kCoco;
  if (name == "folder") return Format::kFolder;
  return fields.error("format", fmt::format("is \"{}\"{}", name,
                                            yaml::suggestion(name, {"jsonl", "coco", "folder"})));
}

Result<DataSource> read_source_map(const yaml::Fields& fields) {
  DataSource source;
  VALORA_TRY(format, fields.text("format"));
  if (format) {
    VALORA_TRY(parsed, parse_format(fields, *format));
    const Wanted wanted = parsed == Format::kFolder ? Wanted::kFolder : Wanted::kFile;
    VALORA_TRY(path, read_path(fields, "path", wanted));
    source.format = parsed;
    source.path = std::move(path);
  } else {
    VALORA_TRY(path, read_path(fields, "path", Wanted::kEither));
    VALORA_TRY(guessed, guess_format(fields, "path", path));
    source.format = guessed;
    source.path = std::move(path);
  }
  if (fields.find("media_root")) {
    if (source.format == Format::kFolder)
      return fields.error("media_root", "has no meaning for a folder");
    VALORA_TRY(root, read_path(fields, "media_root", Wanted::kFolder));
    source.media_root = std::move(root);
  }
  VALORA_TRY(limit, fields.integer("limit", 1, std::numeric_limits<int64_t>::max()));
  source.limit = limit;
  return source;
}

Result<std::optional<DataSource>> read_any_source(const yaml::Fields& fields,
                                                  std::string_view key) {
  const yaml::Node* node = fields.find(key);
  if (!node) return std::optional<DataSource>{};
  if (node->kind == yaml::Node::Kind::kText) {
    DataSource source;
    VALORA_TRY(path, read_path(fields, key, Wanted::kEither));
    VALORA_TRY(format, guess_format(fields, key, path));
    source.format = format;
    source.path = std::move(path);
    return std::optional(std::move(source));
  }
  VALORA_TRY(map, yaml::Fields::open(fields.file(), *node, fields.name(key) + ".",
                                     {"format", "path", "media_root", "limit"}));
  VALORA_TRY(source, read_source_map(map));
  return std::optional(std::move(source));
}

Status read_size(const yaml::Fields& fields, TeacherSource& teacher) {
  if (!fields.find("size")) return {};
  VALORA_TRY(size, fields.numbers("size"));
  const auto is_side = [](double side) {
    return side >= 1 && side <= kLargestSide && side == static_cast<int>(side);
  };
  if (size.size() != 2 || !is_side(size[0]) || !is_side(size[1]))
    return fields.error(
        "size", fmt::format("must be [width, height], integers from 1 to {}", kLargestSide));
  teacher.width = static_cast<int>(size[0]);
  teacher.height = static_cast<int>(size[1]);
  return {};
}

Status read_channels(const yaml::Fields& fields, TeacherSource& teacher) {
  VALORA_TRY(channels, fields.integer("channels", 1, 3));
  if (channels && *channels == 2) return fields.error("channels", "must be 3, or 1 for grey");
  teacher.channels = static_cast<int>(channels.value_or(3));
  VALORA_TRY(mean, fields.numbers("mean"));
  VALORA_TRY(deviation, fields.numbers("std"));
  for (const char* key : {"mean", "std"}) {
    const size_t count = std::string_view(key) == "mean" ? mean.size() : deviation.size();
    if ((fields.find("mean") || fields.find("std")) &&
        count != static_cast<size_t>(teacher.channels))
      return fields.error(key, fmt::format("must have {} numbers, one per channel, not {}",
                                           teacher.channels, count));
  }
  if (std::any_of(deviation.begin(), deviation.end(), [](double d) { return d <= 0; }))
    return fields.error("std", "must be above 0");
  teacher.mean = std::move(mean);
  teacher.deviation = std::move(deviation);
  return {};
}

Status read_output(const yaml::Fields& fields, TaskType type, TeacherSource& teacher) {
  VALORA_TRY(output, fields.required_text("output"));
  if (output != "scores" && output != "boxes")
    return fields.error("output", fmt::format("is \"{}\"{}", output,
                                              yaml::suggestion(output, {"scores", "boxes"})));
  teacher.output = output == "boxes" ? Output::kBoxes : Output::kScores;
  const bool fits = output == "boxes" ? has_boxes(type) : type == TaskType::kClassification;
  if (!fits)
    return fields.error("output", fmt::format("{} does not fit {}", output, task_type_name(type)));
  return {};
}

Status read_torchscript(const yaml::Fields& fields, TaskType type, TeacherSource& teacher) {
  VALORA_TRY(path, read_path(fields, "path", Wanted::kFile));
  teacher.path = std::move(path);
  VALORA_CHECK(read_output(fields, type, teacher));
  VALORA_CHECK(read_size(fields, teacher));
  return read_channels(fields, teacher);
}

Status read_endpoint(const yaml::Fields& fields, TeacherSource& teacher) {
  VALORA_TRY(url, fields.required_text("url"));
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return fields.error("url", "must begin with http:// or https://");
  VALORA_TRY(model, fields.required_text("model"));
  teacher.url = std::move(url);
  teacher.model = std::move(model);
  return {};
}

Result<Kind> read_kind(const yaml::Fields& fields) {
  VALORA_TRY(name, fields.required_text("kind"));
  if (name == "torchscript") return Kind::kTorchScript;
  if (name == "endpoint") return Kind::kEndpoint;
  if (name == "adapter") return Kind::kAdapter;
  return fields.error("kind",
                      fmt::format("is \"{}\"{}", name,
                                  yaml::suggestion(name, {"torchscript", "endpoint", "adapter"})));
}

// Keys that this kind of teacher ignores are errors.
Status check_keys_of_kind(const yaml::Fields& fields, Kind kind) {
  for (const char* key : {"output", "size", "mean", "std", "channels"})
    if (kind != Kind::kTorchScript && fields.find(key))
      return fields.error(key, "is for a torchscript teacher alone");
  for (const char* key : {"url", "model"})
    if (kind != Kind::kEndpoint && fields.find(key))
      return fields.error(key, "is for an endpoint alone");
  if (kind == Kind::kEndpoint && fields.find("path"))
    return fields.error("path", "is not for an endpoint");
  return {};
}

Status read_of_kind(const yaml::Fields& fields, TaskType type, TeacherSource& teacher) {
  VALORA_CHECK(check_keys_of_kind(fields, teacher.kind));
  if (teacher.kind == Kind::kTorchScript) return read_torchscript(fields, type, teacher);
  if (teacher.kind == Kind::kEndpoint) return read_endpoint(fields, teacher);
  VALORA_TRY(path, read_path(fields, "path", Wanted::kFolder));
  teacher.path = std::move(path);
  return {};
}

Status read_inputs(const yaml::Fields& fields, TeacherSource& teacher) {
  VALORA_TRY(inputs, read_any_source(fields, "inputs"));
  if (!inputs) return fields.error("inputs", "is missing");
  if (inputs->format == Format::kCoco)
    return fields.error("inputs", "must be a folder or a JSONL file, not COCO's JSON");
  teacher.inputs = std::move(*inputs);
  return {};
}

}  // namespace

Result<std::optional<DataSource>> read_source(const yaml::Fields& fields, std::string_view key,
                                              TaskType type) {
  VALORA_TRY(source, read_any_source(fields, key));
  if (source && source->format == Format::kCoco && !has_boxes(type))
    return fields.error(key,
                        fmt::format("is COCO's JSON, which does not fit {}", task_type_name(type)));
  if (source && source->format == Format::kFolder && !has_labels(type))
    return fields.error(
        key, fmt::format("is one folder per class, which does not fit {}", task_type_name(type)));
  return source;
}

Result<std::optional<TeacherSource>> read_teacher(const yaml::Fields& fields, TaskType type) {
  const yaml::Node* node = fields.find("teacher");
  if (!node) return std::optional<TeacherSource>{};
  VALORA_TRY(keys,
             yaml::Fields::open(fields.file(), *node, "teacher.",
                                {"kind", "inputs", "path", "url", "model", "output", "size", "mean",
                                 "std", "channels", "confidence", "validation_share"}));
  TeacherSource teacher;
  VALORA_TRY(kind, read_kind(keys));
  teacher.kind = kind;
  VALORA_CHECK(read_of_kind(keys, type, teacher));
  VALORA_CHECK(read_inputs(keys, teacher));
  VALORA_TRY(confidence, keys.number("confidence", 0, 1));
  teacher.confidence = confidence.value_or(teacher.confidence);
  VALORA_TRY(share, keys.number("validation_share", 0, 0.9));
  teacher.validation_share = share.value_or(teacher.validation_share);
  return std::optional(std::move(teacher));
}

}  // namespace valora::generator
