#include "generator/teacher.h"

#include <algorithm>

#include "generator/data/datasets.h"
#include "generator/teachers/lesson.h"
#include "generator/teachers/split.h"

namespace valora::generator {
namespace {

std::string described(const Task& task) {
  const TeacherSource& teacher = *task.teacher;
  const std::string who =
      teacher.kind == TeacherSource::Kind::kEndpoint ? teacher.url : teacher.path;
  return "task " + task.name + ": its teacher " + who;
}

Status check(const Task& task, const Engine* engine) {
  if (!task.teacher) return invalid(task.where + ": task " + task.name + " has no teacher");
  if (wants_labels(task) && task.labels.empty())
    return invalid(task.where + ": task " + task.name +
                   " needs \"labels\": what its teacher may answer");
  if (task.teacher->kind == TeacherSource::Kind::kAdapter && !engine)
    return invalid(described(task) + " is an adapter, which needs the base model's engine");
  return {};
}

// Inputs with their lessons, in parallel vectors.
struct Lessons {
  std::vector<Sample> inputs;
  std::vector<Lesson> lessons;
};

Result<Lessons> ask(const Task& task, std::vector<Sample> inputs, Engine* engine,
                    const TeacherOptions& options) {
  if (task.teacher->kind == TeacherSource::Kind::kTorchScript) {
    VALORA_TRY(lessons, ask_torchscript(task, inputs, options));
    return Lessons{std::move(inputs), std::move(lessons)};
  }
  VALORA_TRY(questions, questions_of(task, inputs));
  auto lessons = task.teacher->kind == TeacherSource::Kind::kEndpoint
                     ? ask_endpoint(task, questions, options)
                     : ask_adapter(task, questions, *engine, options);
  if (!lessons.ok()) return lessons.error();
  std::vector<Sample> asked;
  for (Question& question : questions) asked.push_back(std::move(question.input));
  return Lessons{std::move(asked), std::move(lessons).value()};
}

// A picture without boxes teaches that there is no object, unless the question names one that is in
// the picture (docs/tasks.md).
bool teaches_nothing_there(const Task& task, const Sample& input, const Lesson& lesson) {
  const std::string question = input.question.empty() ? question_template(task) : input.question;
  return task.type == TaskType::kDetection && question.find("{label}") == question.npos &&
         lesson.foreign_boxes == 0;
}

// Counts a lesson. Returns true if it is kept.
bool judge(const Task& task, const Sample& input, const Lesson& lesson, TeacherCounts& counts) {
  counts.unsure_boxes += lesson.unsure_boxes;
  counts.foreign_boxes += lesson.foreign_boxes;
  const bool nothing = lesson.labels.empty() && lesson.boxes.empty() && lesson.answer.empty();
  if (lesson.foreign)
    ++counts.foreign;
  else if (nothing && lesson.unsure_boxes > 0)
    ++counts.unsure;
  else if (nothing && !teaches_nothing_there(task, input, lesson))
    ++counts.empty;
  else if (lesson.confidence && *lesson.confidence < task.teacher->confidence)
    ++counts.unsure;
  else {
    ++counts.kept;
    counts.unrated += !lesson.confidence;
    for (const std::string& label : lesson.labels) ++counts.labels[label];
    for (const LabelledBox& box : lesson.boxes) ++counts.labels[box.label];
    return true;
  }
  return false;
}

Status check_kept(const Task& task, const TeacherCounts& c) {
  if (c.kept > 0) return {};
  return unprocessable(described(task) + " taught nothing: of " + std::to_string(c.asked) +
                       " answers " + std::to_string(c.unsure) + " are below the confidence, " +
                       std::to_string(c.foreign) + " are none of the labels, " +
                       std::to_string(c.empty) + " are empty");
}

}  // namespace

Result<TeacherData> ask_teacher(const Task& task, Engine* engine, const TeacherOptions& options) {
  VALORA_CHECK(check(task, engine));
  VALORA_TRY(inputs, read_unlabelled(task.teacher->inputs, task));
  VALORA_TRY(asked, ask(task, std::move(inputs), engine, options));
  TeacherData data;
  data.counts.asked = static_cast<int64_t>(asked.inputs.size());
  std::vector<Sample> kept;
  for (size_t i = 0; i < asked.inputs.size(); ++i) {
    Sample& sample = asked.inputs[i];
    Lesson& lesson = asked.lessons[i];
    if (!judge(task, sample, lesson, data.counts)) continue;
    sample.labels = std::move(lesson.labels);
    sample.boxes = std::move(lesson.boxes);
    sample.answer = std::move(lesson.answer);
    kept.push_back(std::move(sample));
  }
  VALORA_CHECK(check_kept(task, data.counts));
  SplitSamples split = split_samples(
      std::move(kept), task.validation ? 0 : task.teacher->validation_share, options.seed);
  data.train = std::move(split.train);
  data.validation = std::move(split.validation);
  return data;
}

}  // namespace valora::generator
