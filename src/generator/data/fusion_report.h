// The record of a fusion, step by step: written as report.json and as an HTML page (VaLoRA figures
// 5 and 10). Torch-free.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::generator {

struct ReportedTask {
  std::string name, type, metric;
  std::optional<double> floor;
  double base = 0;               // the base model's, before any training
  std::optional<double> chance;  // accuracy of a constant or uniform answer, if the task has labels
  std::optional<double> alone;   // accuracy of an adapter for this task alone, if one was trained
  int64_t train_samples = 0, validation_samples = 0;
  int64_t dropped = 0;  // dropped by the teacher's confidence threshold
};

// One attempt: train `task` into `adapter`, then evaluate all tasks that it holds.
struct FusionStep {
  std::string task, adapter;
  int rank = 0;
  bool activated = false;                    // the adapter acts from an invocation on
  int samples_before = 0;                    // replayed samples of the adapter's earlier tasks
  std::map<std::string, double> accuracies;  // of all the adapter's tasks after the step
  std::vector<std::string> failed;           // tasks below their floors
  bool kept = false;                         // false: rolled back
  std::string why;  // one clause: "kept", "rolled back: plates 0.71 < 0.80", …
  double seconds = 0, evaluation_seconds = 0;
  double first_loss = 0, last_loss = 0;
  int64_t steps = 0;  // optimizer steps
};

struct ReportedAdapter {
  std::string name, path;
  int rank = 0;
  bool activated = false;
  size_t bytes = 0;
  std::vector<std::string> tasks;
  std::map<std::string, double> accuracies;
  // Tasks that missed their floor even in an adapter of their own.
  std::vector<std::string> below_floor;
};

struct FusionReport {
  std::string model;
  Json options;  // of the run, as given
  std::vector<ReportedTask> tasks;
  std::vector<FusionStep> steps;
  std::vector<ReportedAdapter> adapters;
  double seconds = 0;
  size_t peak_bytes = 0;  // peak resident memory
};

Json to_json(const FusionReport& report);
Result<FusionReport> report_from_json(const Json& json, const std::string& what);
// One self-contained HTML page: tables, and charts of each task's accuracy after each step.
std::string to_html(const FusionReport& report);

}  // namespace valora::generator
