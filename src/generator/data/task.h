// A task that an adapter learns: one entry of a tasks file (docs/tasks.md). Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/data/sample.h"

namespace valora::generator {

// VaLoRA §6.1: visual retrieval (referring expressions, question answering, captioning) and video
// analytics (detection, video understanding), and plain image classification.
enum class TaskType {
  kClassification,
  kQuestionAnswering,
  kCaptioning,
  kDetection,
  kGrounding,
  kVideo
};

enum class Metric {
  kTop1,  // the answer is the sample's label
  // The answer equals the sample's or one of its references, ignoring surrounding white space.
  kExact,
  // min(1, agreeing answers / 3) over the ten leave-one-out sets, after the usual normalisation.
  kVqa,
  kF1AtIou,        // F1 over all boxes of the set, matched within their label at an overlap of 0.5
  kAccuracyAtIou,  // the first box overlaps the sample's by at least 0.5
  kCider,          // CIDEr-D / 10, so that all metrics are in 0 … 1
  kRougeL,
};

inline constexpr int kLargestBoxScale = 1'000'000;

// The text format of boxes in answers.
struct BoxFormat {
  int scale = 1000;    // units per side of the picture
  bool labels = true;  // <ref>label</ref><box>(x0,y0),(x1,y1)</box>; false: [x0,y0,x1,y1]
};

// The source of one set of samples.
struct DataSource {
  enum class Format { kJsonl, kCoco, kFolder };
  Format format = Format::kJsonl;
  std::string path;              // of the file or folder
  std::string media_root;        // base of relative media paths; empty: the file's folder
  std::optional<int64_t> limit;  // most samples to read
};

// A small model whose answers become data (VaLoRA §4.2.1). It answers the pictures of a folder or
// the media of a JSONL file.
struct TeacherSource {
  enum class Kind { kTorchScript, kEndpoint, kAdapter };
  enum class Output {
    kScores,
    kBoxes
  };  // output of a TorchScript file: class scores, or (boxes, scores, classes)
  Kind kind = Kind::kTorchScript;
  DataSource inputs;  // media without answers
  std::string path;   // of the TorchScript file or the adapter's folder
  std::string url,
      // The endpoint's base URL ("http://127.0.0.1:8000/v1") and model name.
      model;
  Output output = Output::kScores;
  int width = 224, height = 224;        // picture size
  std::vector<double> mean, deviation;  // per channel; empty: pixels in 0 … 1, unchanged
  int channels = 3;                     // 1: greyscale
  double confidence = 0;                // less confident answers are dropped (scores: the softmax)
  double validation_share = 0.1;        // for validation, if the task has no validation data
};

struct HeadSpec {
  std::string name = "score";
  bool multi_label = false;
};

// Whether activated adapters are tried for a task before plain ones: they act from the last
// occurrence of a text in the prompt on, so that skills of one picture share the KV before it.
struct Activation {
  bool tried = true;
  std::string invocation;  // the text; empty: the start of the answer's turn
};

struct Task {
  std::string name;  // letters, digits, "-", "_", "."
  TaskType type = TaskType::kClassification;
  std::optional<DataSource> train, validation;
  std::optional<TeacherSource> teacher;  // used instead of `train`
  Metric metric = Metric::kExact;
  std::optional<double> floor;      // least value of the metric, 0 … 1; absent: any
  std::vector<std::string> labels;  // of classifications; empty: sorted labels of the training data
  std::optional<HeadSpec> head;
  double weight = 1;     // of its samples in mixed batches
  std::string question;  // for samples without their own; {labels} and {label} are filled in
  BoxFormat boxes;
  std::optional<Activation> activation;  // absent: FusionOptions::activated decides
  int max_answer_tokens = 64;
  std::string where;  // "tasks.yaml:12", for errors
};

inline constexpr TaskType kTaskTypes[] = {TaskType::kClassification, TaskType::kQuestionAnswering,
                                          TaskType::kCaptioning,     TaskType::kDetection,
                                          TaskType::kGrounding,      TaskType::kVideo};
inline constexpr Metric kMetrics[] = {Metric::kTop1,    Metric::kExact,         Metric::kVqa,
                                      Metric::kF1AtIou, Metric::kAccuracyAtIou, Metric::kCider,
                                      Metric::kRougeL};

// Parses the name used in tasks files; nullopt for other names.
const char* task_type_name(TaskType type);
const char* metric_name(Metric metric);
std::optional<TaskType> parse_task_type(std::string_view name);
std::optional<Metric> parse_metric(std::string_view name);

// The metrics allowed for a type, default first.
std::span<const Metric> metrics_of(TaskType type);
inline bool has_boxes(TaskType type) {
  return type == TaskType::kDetection || type == TaskType::kGrounding;
}
// True if a label may be the complete answer to a sample of this type.
inline bool has_labels(TaskType type) {
  return type == TaskType::kClassification || type == TaskType::kVideo;
}

}  // namespace valora::generator
