// Turns a small model's knowledge into data: a teacher answers samples that have no answers (VaLoRA
// §4.2.1, figure 9; docs/teachers.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

struct TeacherOptions {
  uint64_t seed = 0;             // for the split into training and validation data
  int concurrency = 16;          // concurrent questions to an endpoint or the engine
  int batch = 32;                // pictures per call of a TorchScript file
  double timeout_seconds = 120;  // per question to an endpoint
  int retries = 5;               // per question, after HTTP 429, 5xx or a broken connection
  // Before the first retry. Each later one waits twice as long, at most 30 s.
  double retry_seconds = 0.5;
  std::function<void(int done, int total)> progress;
  std::stop_token stop;  // cancels with kCancelled
};

// asked = kept + unsure + foreign + empty.
struct TeacherCounts {
  int64_t asked = 0, kept = 0;
  int64_t unsure = 0;                     // dropped: below the task's confidence
  int64_t foreign = 0;                    // dropped: the answer is not one of the task's labels
  int64_t empty = 0;                      // dropped: no answer, or no box
  int64_t unrated = 0;                    // kept although the teacher reports no confidence
  int64_t unsure_boxes = 0;               // dropped from samples: below the confidence
  int64_t foreign_boxes = 0;              // dropped from samples: not one of the task's labels
  std::map<std::string, int64_t> labels;  // kept samples, or kept boxes, per label
};

// Samples as from read_samples, with labels, boxes or an answer, before apply_templates.
struct TeacherData {
  std::vector<Sample> train;
  std::vector<Sample> validation;  // empty if the task has its own
  TeacherCounts counts;
};

// Asks task.teacher about all of its inputs. engine: serves the task's base model; required for
// kAdapter, may be null otherwise. The adapter is loaded for the duration of the call. Equal
// inputs, answers and seed give the same split. Errors name the teacher's file or URL, and the
// input: a file that is missing or broken, raises an error or returns a shape other than the
// task's; an endpoint that does not answer; a teacher whose answers are all dropped.
Result<TeacherData> ask_teacher(const Task& task, Engine* engine,
                                const TeacherOptions& options = {});

}  // namespace valora::generator
