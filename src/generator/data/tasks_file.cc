#include "generator/data/tasks_file.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/files/file.h"
#include "base/text/strings.h"
#include "generator/data/task_sources.h"
#include "yaml/fields.h"

namespace valora::generator {
namespace {

constexpr yaml::Limits kYamlLimits;
constexpr size_t kLongestName = 128;
constexpr int kLongestAnswer = 65'536;
constexpr double kLargestWeight = 1e6;

// Task names are used as folder and adapter names, so "..", options and paths are rejected.
Status check_name(const yaml::Fields& fields, std::string_view key, const std::string& name) {
  const auto is_alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const bool fits = std::all_of(name.begin(), name.end(), [&](char c) {
    return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
  if (!fits || name.size() > kLongestName || !is_alphanumeric(name[0]))
    return fields.error(
        key,
        fmt::format(
            "is \"{}\": up to {} letters, digits, \"-\", \"_\", \".\", a letter or digit first",
            shortened(name, 60), kLongestName));
  return {};
}

template <typename Value, typename Parse, typename Name>
Result<Value> parse_name(const yaml::Fields& fields, std::string_view key, const std::string& text,
                         Parse parse, std::span<const Value> all, Name name) {
  if (const std::optional<Value> value = parse(text)) return *value;
  std::vector<std::string_view> known;
  for (const Value value : all) known.push_back(name(value));
  return fields.error(
      key, fmt::format("is \"{}\"{}", shortened(text, 60), yaml::suggestion(text, known)));
}

Status read_metric(const yaml::Fields& fields, Task& task) {
  const std::span<const Metric> fitting = metrics_of(task.type);
  task.metric = fitting.front();
  VALORA_TRY(text, fields.text("metric"));
  if (!text) return {};
  VALORA_TRY(metric,
             (parse_name<Metric>(fields, "metric", *text, parse_metric, kMetrics, metric_name)));
  if (std::find(fitting.begin(), fitting.end(), metric) == fitting.end()) {
    std::vector<std::string_view> names;
    for (const Metric other : fitting) names.push_back(metric_name(other));
    return fields.error("metric", fmt::format("{} does not fit {}, which is measured by {}", *text,
                                              task_type_name(task.type), fmt::join(names, ", ")));
  }
  task.metric = metric;
  return {};
}

Status read_sources(const yaml::Fields& fields, Task& task) {
  VALORA_TRY(train, read_source(fields, "train", task.type));
  VALORA_TRY(validation, read_source(fields, "validation", task.type));
  VALORA_TRY(teacher, read_teacher(fields, task.type));
  if (!train && !teacher) return fields.error("train", "is missing, and there is no teacher");
  if (train && teacher) return fields.error("teacher", "replaces \"train\"; give one of them");
  if (!validation && !teacher) return fields.error("validation", "is missing");
  if (!validation && teacher->validation_share == 0)
    return fields.error("validation", "is missing, and teacher.validation_share is 0");
  task.train = std::move(train);
  task.validation = std::move(validation);
  task.teacher = std::move(teacher);
  return {};
}

Status read_labels(const yaml::Fields& fields, Task& task) {
  VALORA_TRY(labels, fields.texts("labels"));
  if (!labels.empty() && !has_labels(task.type) && !has_boxes(task.type))
    return fields.error("labels", fmt::format("does not fit {}", task_type_name(task.type)));
  if (labels.size() == 1 && task.type == TaskType::kClassification)
    return fields.error("labels", "has one label; a classification needs two");
  const bool scores = task.teacher && task.teacher->kind == TeacherSource::Kind::kTorchScript;
  if (labels.empty() && scores)
    return fields.error("labels", "is missing: the classes of a torchscript teacher, in its order");
  task.labels = std::move(labels);
  return {};
}

bool is_flag(const yaml::Node& node) {
  return node.kind == yaml::Node::Kind::kText && !node.quoted &&
         (node.text == "true" || node.text == "false");
}

Result<std::optional<HeadSpec>> parse_head(const yaml::Fields& fields) {
  const yaml::Node* node = fields.find("head");
  if (!node) return std::optional<HeadSpec>{};
  HeadSpec head;
  if (is_flag(*node)) return node->text == "true" ? std::optional(head) : std::nullopt;
  if (node->kind == yaml::Node::Kind::kText) {
    VALORA_CHECK(check_name(fields, "head", head.name = node->text));
    return std::optional(head);
  }
  VALORA_TRY(keys, yaml::Fields::open(fields.file(), *node, "head.", {"name", "multi_label"}));
  VALORA_TRY(name, keys.text("name"));
  VALORA_CHECK(check_name(keys, "name", head.name = name.value_or(head.name)));
  VALORA_TRY(multi_label, keys.flag("multi_label"));
  head.multi_label = multi_label.value_or(false);
  return std::optional(head);
}

Status read_head(const yaml::Fields& fields, Task& task) {
  VALORA_TRY(head, parse_head(fields));
  if (!head) return {};
  if (!has_labels(task.type))
    return fields.error("head", fmt::format("answers with labels, which does not fit {}",
                                            task_type_name(task.type)));
  if (task.metric != Metric::kTop1)
    return fields.error("head", "answers with labels: its metric is top1");
  if (task.labels.empty() && task.teacher)
    return fields.error("labels", "is missing: a head needs them before the teacher has answered");
  task.head = std::move(head);
  return {};
}

Status read_question(const yaml::Fields& fields, Task& task) {
  VALORA_TRY(question, fields.text("question"));
  task.question = question.value_or("");
  const bool label = task.question.find("{label}") != std::string::npos;
  const bool labels = task.question.find("{labels}") != std::string::npos;
  if (label && !has_boxes(task.type))
    return fields.error(
        "question",
        fmt::format("has {{label}}, which {} does not fill in{}", task_type_name(task.type),
                    has_labels(task.type) ? "; all labels are {labels}" : ""));
  if (labels && !has_boxes(task.type) && !has_labels(task.type))
    return fields.error("question", fmt::format("has {{labels}}, which {} does not fill in",
                                                task_type_name(task.type)));
  return {};
}

Status read_boxes(const yaml::Fields& fields, Task& task) {
  const yaml::Node* node = fields.find("boxes");
  if (!node) return {};
  if (!has_boxes(task.type))
    return fields.error("boxes", fmt::format("does not fit {}", task_type_name(task.type)));
  VALORA_TRY(keys, yaml::Fields::open(fields.file(), *node, "boxes.", {"scale", "labels"}));
  VALORA_TRY(scale, keys.integer("scale", 1, kLargestBoxScale));
  VALORA_TRY(labels, keys.flag("labels"));
  task.boxes.scale = static_cast<int>(scale.value_or(task.boxes.scale));
  task.boxes.labels = labels.value_or(task.boxes.labels);
  return {};
}

Status read_activation(const yaml::Fields& fields, Task& task) {
  const yaml::Node* node = fields.find("activation");
  if (!node) return {};
  Activation activation;
  if (is_flag(*node)) {
    activation.tried = node->text == "true";
  } else {
    VALORA_TRY(keys, yaml::Fields::open(fields.file(), *node, "activation.", {"invocation"}));
    VALORA_TRY(invocation, keys.required_text("invocation"));
    activation.invocation = std::move(invocation);
  }
  task.activation = std::move(activation);
  return {};
}

Status read_numbers(const yaml::Fields& fields, Task& task) {
  VALORA_TRY(floor, fields.number("floor", 0, 1));
  VALORA_TRY(weight, fields.number("weight", 0, kLargestWeight));
  VALORA_TRY(tokens, fields.integer("max_answer_tokens", 1, kLongestAnswer));
  if (weight && *weight == 0) return fields.error("weight", "must be above 0");
  task.floor = floor;
  task.weight = weight.value_or(task.weight);
  task.max_answer_tokens = static_cast<int>(tokens.value_or(task.max_answer_tokens));
  return {};
}

Result<Task> read_task(const std::string& file, const yaml::Node& node) {
  VALORA_TRY(fields, yaml::Fields::open(file, node, "",
                                        {"name", "type", "train", "validation", "teacher", "metric",
                                         "floor", "labels", "head", "weight", "question", "boxes",
                                         "activation", "max_answer_tokens"}));
  Task task;
  task.where = fmt::format("{}:{}", file, fields.line());
  VALORA_TRY(name, fields.required_text("name"));
  VALORA_CHECK(check_name(fields, "name", name));
  task.name = std::move(name);
  VALORA_TRY(type_name, fields.required_text("type"));
  VALORA_TRY(type, (parse_name<TaskType>(fields, "type", type_name, parse_task_type, kTaskTypes,
                                         task_type_name)));
  task.type = type;
  VALORA_CHECK(read_metric(fields, task));
  VALORA_CHECK(read_sources(fields, task));
  VALORA_CHECK(read_labels(fields, task));
  VALORA_CHECK(read_head(fields, task));
  VALORA_CHECK(read_question(fields, task));
  VALORA_CHECK(read_boxes(fields, task));
  VALORA_CHECK(read_activation(fields, task));
  VALORA_CHECK(read_numbers(fields, task));
  return task;
}

// If data are missing, tells how to prepare them.
Error with_preparation(Error error, const std::optional<std::string>& prepare) {
  if (error.code == ErrorCode::kNotFound && prepare)
    error.message += fmt::format("; to prepare the data of this file: {}", *prepare);
  return error;
}

}  // namespace

Result<std::vector<Task>> read_tasks(const std::string& path) {
  VALORA_TRY(text, read_file(path, kYamlLimits.max_bytes));
  VALORA_TRY(root, yaml::parse(text, path, kYamlLimits));
  VALORA_TRY(fields, yaml::Fields::open(path, root, "", {"tasks", "prepare"}));
  VALORA_TRY(prepare, fields.text("prepare"));
  const yaml::Node* list = fields.find("tasks");
  if (!list) return fields.error("tasks", "is missing");
  if (list->kind != yaml::Node::Kind::kList || list->children.empty())
    return fields.error("tasks", "must be a list of at least one task");
  std::vector<Task> tasks;
  std::map<std::string, std::string> places;
  for (const yaml::Node& node : list->children) {
    auto task = read_task(path, node);
    if (!task.ok()) return with_preparation(task.error(), prepare);
    const auto [first, is_new] = places.emplace(task->name, task->where);
    if (!is_new)
      return invalid(fmt::format("{}: \"name\": {} is also the task at {}", task->where, task->name,
                                 first->second),
                     "name");
    tasks.push_back(std::move(*task));
  }
  return tasks;
}

}  // namespace valora::generator
