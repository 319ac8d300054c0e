// A small model's knowledge as data: a teacher answers samples that have none (VaLoRA §4.2.1,
// figure 9; docs/teachers.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

struct TeacherOptions {
  uint64_t seed = 0;             // of the split into training and validation data
  int concurrency = 16;          // questions that an endpoint or the engine has at once
  int batch = 32;                // pictures that a TorchScript file gets at once
  double timeout_seconds = 120;  // of one question to an endpoint
  int retries = 5;               // of one question, after HTTP 429 or 5xx or a broken connection
  double retry_seconds =
      0.5;  // before the first of these; each later one waits twice as long, 30 s at most
  std::function<void(int done, int total)> progress;
};

// asked = kept + unsure + foreign + empty.
struct TeacherCounts {
  int64_t asked = 0, kept = 0;
  int64_t unsure = 0;                     // dropped: below the task's confidence
  int64_t foreign = 0;                    // dropped: an answer that is none of the task's labels
  int64_t empty = 0;                      // dropped: no answer, or no box
  int64_t unrated = 0;                    // kept, though the teacher did not say how sure it is
  int64_t unsure_boxes = 0;               // left out of samples: below the confidence
  int64_t foreign_boxes = 0;              // left out of samples: of none of the task's labels
  std::map<std::string, int64_t> labels;  // kept samples of each label, or kept boxes
};

// Samples as read_samples gives them, with labels, boxes or an answer: apply_templates comes after.
struct TeacherData {
  std::vector<Sample> train;
  std::vector<Sample> validation;  // empty where the task brings its own
  TeacherCounts counts;
};

// Asks task.teacher about all of its inputs. engine: of the task's base model, for kAdapter alone
// (else may be null); the adapter is loaded for as long as this runs. Equal inputs, answers and
// seed give the same split. Errors name the teacher's file or URL, and the input: a file that is
// missing, broken, raises an error or gives another shape than the task says; an endpoint that does
// not answer; a teacher none of whose answers are kept.
Result<TeacherData> ask_teacher(const Task& task, Engine* engine,
                                const TeacherOptions& options = {});

}  // namespace valora::generator
