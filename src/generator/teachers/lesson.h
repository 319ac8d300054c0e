// What a teacher says about one input, before the confidence decides what is kept.
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
  std::vector<LabelledBox> boxes;   // the surest first
  std::string answer;
  std::optional<double> confidence;         // 0 … 1; none: the teacher does not say
  bool foreign = false;                     // answered with what is none of the task's labels
  int unsure_boxes = 0, foreign_boxes = 0;  // of those left out
};

// What teachers who read text are asked about an input.
struct Question {
  Sample input;
  std::string text;
  std::string label;  // what a grounding question asks for, where it is a label of the task
};

// Whether samples of the task have labels, and not text, as their answer.
bool wants_labels(const Task& task);

// One a picture; grounding with the task's labels: one a picture and label.
Result<std::vector<Question>> questions_of(const Task& task, const std::vector<Sample>& inputs);
Lesson read_lesson(const Task& task, const Question& question, const std::string& answer);
// The mean probability of its tokens; none where there are none.
std::optional<double> confidence_of(std::span<const float> logprobs);

// One lesson an input or question.
Result<std::vector<Lesson>> ask_torchscript(const Task& task, std::span<const Sample> inputs,
                                            const TeacherOptions& options);
Result<std::vector<Lesson>> ask_endpoint(const Task& task, std::span<const Question> questions,
                                         const TeacherOptions& options);
Result<std::vector<Lesson>> ask_adapter(const Task& task, std::span<const Question> questions,
                                        Engine& engine, const TeacherOptions& options);

}  // namespace valora::generator
