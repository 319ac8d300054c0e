#include "generator/data/task.h"

namespace valora::generator {

const char* task_type_name(TaskType type) {
  switch (type) {
    case TaskType::kClassification: return "classification";
    case TaskType::kQuestionAnswering: return "question_answering";
    case TaskType::kCaptioning: return "captioning";
    case TaskType::kDetection: return "detection";
    case TaskType::kGrounding: return "grounding";
    case TaskType::kVideo: return "video";
  }
  return "";
}

const char* metric_name(Metric metric) {
  switch (metric) {
    case Metric::kTop1: return "top1";
    case Metric::kExact: return "exact";
    case Metric::kVqa: return "vqa";
    case Metric::kF1AtIou: return "f1";
    case Metric::kAccuracyAtIou: return "box_accuracy";
    case Metric::kCider: return "cider";
    case Metric::kRougeL: return "rouge_l";
  }
  return "";
}

std::optional<TaskType> parse_task_type(std::string_view name) {
  for (const TaskType type : kTaskTypes)
    if (name == task_type_name(type)) return type;
  return {};
}

std::optional<Metric> parse_metric(std::string_view name) {
  for (const Metric metric : kMetrics)
    if (name == metric_name(metric)) return metric;
  return {};
}

std::span<const Metric> metrics_of(TaskType type) {
  using enum Metric;
  static constexpr Metric kOfClassification[] = {kTop1, kExact};
  static constexpr Metric kOfQuestions[] = {kVqa, kExact, kRougeL};
  static constexpr Metric kOfCaptions[] = {kCider, kRougeL, kExact};
  static constexpr Metric kOfDetection[] = {kF1AtIou};
  static constexpr Metric kOfGrounding[] = {kAccuracyAtIou, kF1AtIou};
  static constexpr Metric kOfVideo[] = {kTop1, kExact, kVqa, kRougeL, kCider};
  switch (type) {
    case TaskType::kClassification: return kOfClassification;
    case TaskType::kQuestionAnswering: return kOfQuestions;
    case TaskType::kCaptioning: return kOfCaptions;
    case TaskType::kDetection: return kOfDetection;
    case TaskType::kGrounding: return kOfGrounding;
    case TaskType::kVideo: return kOfVideo;
  }
  return {};
}

}  // namespace valora::generator
