// The report as JSON, keyed by the field names. Non-finite numbers are written as null and read as
// NaN.
#include "generator/data/fusion_report.h"

#include <cmath>
#include <limits>

namespace valora::generator {
namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }
Json numbers(const std::map<std::string, double>& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = number(value);
  return object;
}

Json to_json(const ReportedTask& task) {
  return {{"name", task.name},
          {"type", task.type},
          {"metric", task.metric},
          {"floor", number(task.floor)},
          {"base", number(task.base)},
          {"chance", number(task.chance)},
          {"alone", number(task.alone)},
          {"train_samples", task.train_samples},
          {"validation_samples", task.validation_samples},
          {"dropped", task.dropped}};
}

Json to_json(const FusionStep& step) {
  return {{"task", step.task},
          {"adapter", step.adapter},
          {"rank", step.rank},
          {"activated", step.activated},
          {"samples_before", step.samples_before},
          {"accuracies", numbers(step.accuracies)},
          {"failed", step.failed},
          {"kept", step.kept},
          {"why", step.why},
          {"seconds", number(step.seconds)},
          {"evaluation_seconds", number(step.evaluation_seconds)},
          {"first_loss", number(step.first_loss)},
          {"last_loss", number(step.last_loss)},
          {"steps", step.steps}};
}

Json to_json(const ReportedAdapter& adapter) {
  return {{"name", adapter.name},
          {"path", adapter.path},
          {"rank", adapter.rank},
          {"activated", adapter.activated},
          {"bytes", adapter.bytes},
          {"tasks", adapter.tasks},
          {"accuracies", numbers(adapter.accuracies)},
          {"below_floor", adapter.below_floor}};
}

template <typename T>
Json list_json(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(to_json(item));
  return list;
}

// Reads the fields of one object. Keeps the first error, which names the object.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail("must be an object");
  }

  void read(const char* key, std::string& out) { read_as<std::string>(key, out); }
  void read(const char* key, bool& out) { read_as<bool>(key, out); }
  void read(const char* key, int& out) { read_as<int32_t>(key, out); }
  void read(const char* key, int64_t& out) { read_as<int64_t>(key, out); }
  void read(const char* key, size_t& out) {
    int64_t value = 0;
    read(key, value);
    if (value < 0) return fail(std::string("\"") + key + "\" must not be negative");
    out = static_cast<size_t>(value);
  }
  void read(const char* key, double& out) {
    if (const Json* value = find(key)) read_number(*value, key, out);
  }
  void read(const char* key, std::optional<double>& out) {
    if (!status_.ok()) return;
    auto value = optional_field<double>(object_, key);
    if (!value.ok()) return fail(value.error().message);
    out = *value;
  }
  void read(const char* key, std::vector<std::string>& out) {
    const Json* list = find(key);
    if (!list) return;
    if (!list->is_array()) return fail(std::string("\"") + key + "\" must be a list");
    for (const Json& item : *list) {
      if (!item.is_string()) return fail(std::string("\"") + key + "\" must hold strings");
      out.push_back(item.get<std::string>());
    }
  }
  void read(const char* key, std::map<std::string, double>& out) {
    const Json* object = find(key);
    if (!object) return;
    if (!object->is_object()) return fail(std::string("\"") + key + "\" must be an object");
    for (const auto& [name, value] : object->items()) read_number(value, key, out[name]);
  }
  template <typename T>
  void read_list(const char* key, std::vector<T>& out) {
    const Json* list = find(key);
    if (!list) return;
    if (!list->is_array()) return fail(std::string("\"") + key + "\" must be a list");
    for (size_t i = 0; i < list->size() && status_.ok(); ++i) {
      Fields fields((*list)[i], where_ + ": " + key + "[" + std::to_string(i) + "]");
      read_fields(fields, out.emplace_back());
      status_ = fields.status_;
    }
  }
  Json read_any(const char* key) {
    const Json* value = find(key);
    return value ? *value : Json();
  }
  const Status& status() const { return status_; }

 private:
  static void read_fields(Fields& fields, ReportedTask& task);
  static void read_fields(Fields& fields, FusionStep& step);
  static void read_fields(Fields& fields, ReportedAdapter& adapter);

  void fail(const std::string& what) {
    if (status_.ok()) status_ = invalid(where_ + ": " + what);
  }

  // Null if the key is absent, or after an error.
  const Json* find(const char* key) {
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    fail(std::string("\"") + key + "\" is missing");
    return nullptr;
  }

  template <typename T>
  void read_as(const char* key, T& out) {
    if (!status_.ok()) return;
    auto value = required_field<T>(object_, key);
    if (!value.ok()) return fail(value.error().message);
    out = std::move(*value);
  }

  void read_number(const Json& value, const char* key, double& out) {
    if (!value.is_null() && !value.is_number())
      return fail(std::string("\"") + key + "\" must be a number, or hold numbers");
    out = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  }

  const Json& object_;
  std::string where_;
  Status status_;
};

void Fields::read_fields(Fields& fields, ReportedTask& task) {
  fields.read("name", task.name);
  fields.read("type", task.type);
  fields.read("metric", task.metric);
  fields.read("floor", task.floor);
  fields.read("base", task.base);
  fields.read("chance", task.chance);
  fields.read("alone", task.alone);
  fields.read("train_samples", task.train_samples);
  fields.read("validation_samples", task.validation_samples);
  fields.read("dropped", task.dropped);
}

void Fields::read_fields(Fields& fields, FusionStep& step) {
  fields.read("task", step.task);
  fields.read("adapter", step.adapter);
  fields.read("rank", step.rank);
  fields.read("activated", step.activated);
  fields.read("samples_before", step.samples_before);
  fields.read("accuracies", step.accuracies);
  fields.read("failed", step.failed);
  fields.read("kept", step.kept);
  fields.read("why", step.why);
  fields.read("seconds", step.seconds);
  fields.read("evaluation_seconds", step.evaluation_seconds);
  fields.read("first_loss", step.first_loss);
  fields.read("last_loss", step.last_loss);
  fields.read("steps", step.steps);
}

void Fields::read_fields(Fields& fields, ReportedAdapter& adapter) {
  fields.read("name", adapter.name);
  fields.read("path", adapter.path);
  fields.read("rank", adapter.rank);
  fields.read("activated", adapter.activated);
  fields.read("bytes", adapter.bytes);
  fields.read("tasks", adapter.tasks);
  fields.read("accuracies", adapter.accuracies);
  fields.read("below_floor", adapter.below_floor);
}

}  // namespace

Json to_json(const FusionReport& report) {
  return {{"model", report.model},
          {"options", report.options},
          {"tasks", list_json(report.tasks)},
          {"steps", list_json(report.steps)},
          {"adapters", list_json(report.adapters)},
          {"seconds", number(report.seconds)},
          {"peak_bytes", report.peak_bytes}};
}

Result<FusionReport> report_from_json(const Json& json, const std::string& what) {
  FusionReport report;
  Fields fields(json, what);
  fields.read("model", report.model);
  report.options = fields.read_any("options");
  fields.read_list("tasks", report.tasks);
  fields.read_list("steps", report.steps);
  fields.read_list("adapters", report.adapters);
  fields.read("seconds", report.seconds);
  fields.read("peak_bytes", report.peak_bytes);
  if (!fields.status().ok()) return fields.status().error();
  return report;
}

}  // namespace valora::generator
