// A teacher's answer about one input, before the confidence threshold.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/result.h"
#include "generator/teacher.h"

namespace valora::generator {

struct Lesson {
  std::vector<std::string> labels;  // of a classification
  std::vector<LabelledBox> boxes;   // in descending confidence
  std::string answer;
  std::optional<double> confidence;         // 0 … 1; absent: the teacher reports none
  bool foreign = false;                     // the answer is not one of the task's labels
  int unsure_boxes = 0, foreign_boxes = 0;  // numbers of dropped boxes
};

// A question for a teacher that reads text.
struct Question {
  Sample input;
  std::string text;
  std::string label;  // label that a grounding question asks for, if the task lists it
};

// True if the task's samples are answered with labels rather than text.
bool wants_labels(const Task& task);

// One per picture; for grounding tasks that list labels, one per picture and label.
Result<std::vector<Question>> questions_of(const Task& task, const std::vector<Sample>& inputs);
Lesson read_lesson(const Task& task, const Question& question, const std::string& answer);
// Mean probability of the tokens; absent if there are no tokens.
std::optional<double> confidence_of(std::span<const float> logprobs);

// Each returns one lesson per input or question.
Result<std::vector<Lesson>> ask_torchscript(const Task& task, std::span<const Sample> inputs,
                                            const TeacherOptions& options);
Result<std::vector<Lesson>> ask_endpoint(const Task& task, std::span<const Question> questions,
                                         const TeacherOptions& options);
Result<std::vector<Lesson>> ask_adapter(const Task& task, std::span<const Question> questions,
                                        Engine& engine, const TeacherOptions& options);

}  // namespace valora::generator
