// A teacher in a TorchScript file, with class scores in batches or boxes per picture.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>

#include "base/files/file.h"
#include "base/result.h"
#include "generator/data/task.h"
#include "generator/stopped.h"
#include "generator/teachers/lesson.h"
#include "generator/teachers/torchscript_file.h"
#include "media/image/image.h"

namespace valora::generator {
namespace {

Result<media::Image> picture_of(const TeacherSource& teacher, const Sample& sample) {
  if (sample.media.size() != 1 || sample.media.front().kind != Medium::Kind::kImage ||
      sample.media.front().files.size() != 1)
    return invalid("a TorchScript teacher needs one image per sample");
  const media::Limits limits;
  VALORA_TRY(bytes, read_file(sample.media.front().files.front(), limits.max_bytes));
  VALORA_TRY(image, media::decode_image(
                        {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, limits));
  return media::resize_bicubic(image, teacher.width, teacher.height);
}

// The weights of PIL's convert("L").
uint8_t grey(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

// out: [channels, height, width].
void write_planes(const TeacherSource& teacher, const media::Image& image, float* out) {
  const size_t pixels = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  for (int c = 0; c < teacher.channels; ++c) {
    const double mean = teacher.mean.empty() ? 0 : teacher.mean[static_cast<size_t>(c)];
    const double deviation =
        teacher.deviation.empty() ? 1 : teacher.deviation[static_cast<size_t>(c)];
    for (size_t i = 0; i < pixels; ++i) {
      const uint8_t* rgb = &image.rgb[i * 3];
      const double value = (teacher.channels == 1 ? grey(rgb) : rgb[c]) / 255.0;
      *out++ = static_cast<float>((value - mean) / deviation);
    }
  }
}

// kInvalidArgument unless sizes, mean and deviation fit together.
Status check_input(const TeacherSource& teacher) {
  if (teacher.width < 1 || teacher.height < 1 || teacher.width > 8192 || teacher.height > 8192)
    return invalid("a teacher's pictures must have sides of 1 to 8192 pixels");
  if (teacher.channels != 1 && teacher.channels != 3)
    return invalid("a teacher's pictures must have 1 or 3 channels");
  const auto channels = static_cast<size_t>(teacher.channels);
  if (!teacher.mean.empty() && teacher.mean.size() != channels)
    return invalid("a teacher's mean must have one number per channel");
  if (!teacher.deviation.empty() && teacher.deviation.size() != channels)
    return invalid("a teacher's std must have one number per channel");
  for (const double deviation : teacher.deviation)
    if (!(deviation > 0)) return invalid("a teacher's std must be above 0");
  return {};
}

// fp32 [samples, channels, height, width]: each sample's picture, resized to exactly the teacher's
// size (PIL's bicubic, ignoring the aspect ratio), greyscale (PIL's L) if there is one channel,
// scaled to 0 … 1, then (x - mean) / deviation. Errors name the sample's origin if it does not have
// exactly one picture, or its picture is broken.
Result<at::Tensor> script_input(const TeacherSource& teacher, std::span<const Sample> samples) {
  at::Tensor input = at::empty(
      {static_cast<int64_t>(samples.size()), teacher.channels, teacher.height, teacher.width},
      at::kFloat);
  const int64_t size = input.stride(0);
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto image = picture_of(teacher, samples[i]);
    if (!image.ok())
      return Error{image.error().code, samples[i].origin + ": " + image.error().message, {}};
    write_planes(teacher, *image, input.data_ptr<float>() + static_cast<int64_t>(i) * size);
  }
  return input;
}

Status check(const Task& task) {
  const bool scores = task.teacher->output == TeacherSource::Output::kScores;
  const char* output = scores ? "scores" : "boxes";
  const bool fits = scores ? task.type == TaskType::kClassification
                           : task.type == TaskType::kDetection || task.type == TaskType::kGrounding;
  if (!fits)
    return invalid(fmt::format("{}: a teacher's {} teach no task of the type {}", task.where,
                               output, task_type_name(task.type)));
  if (task.labels.empty())
    return invalid(fmt::format(
        "{}: task {} needs \"labels\": the names of its teacher's classes, in their order",
        task.where, task.name));
  if (task.head && task.head->multi_label)
    return invalid(fmt::format(
        "{}: a teacher's scores give one label per picture, but the head of task {} takes several",
        task.where, task.name));
  const Status input = check_input(*task.teacher);
  return input.ok() ? input : invalid(task.where + ": " + input.error().message);
}

Result<std::vector<Lesson>> score_lessons(const Task& task, TorchScriptFile& file,
                                          const at::Tensor& pictures) {
  VALORA_TRY(scores, file.scores(pictures, static_cast<int64_t>(task.labels.size())));
  const auto [confidence, best] = at::softmax(scores, -1).max(-1);
  std::vector<Lesson> lessons;
  for (int64_t i = 0; i < pictures.size(0); ++i) {
    Lesson lesson;
    lesson.labels = {task.labels[static_cast<size_t>(best[i].item<int64_t>())]};
    lesson.confidence = confidence[i].item<double>();
    lessons.push_back(std::move(lesson));
  }
  return lessons;
}

// Clips to the picture and converts to shares; nullopt if nothing is left.
std::optional<Box> box_of(const float* corners, const TeacherSource& teacher) {
  const auto share = [](double pixels, int side) { return std::clamp(pixels / side, 0.0, 1.0); };
  const Box box{share(corners[0], teacher.width), share(corners[1], teacher.height),
                share(corners[2], teacher.width), share(corners[3], teacher.height)};
  if (box.x0 < box.x1 && box.y0 < box.y1) return box;
  return std::nullopt;
}

std::vector<int64_t> by_score(const float* scores, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](int64_t i) { return scores[i]; });
  return order;
}

Result<Lesson> box_lesson(const Task& task, TorchScriptFile& file, const at::Tensor& picture) {
  const TeacherSource& teacher = *task.teacher;
  VALORA_TRY(found, file.boxes(picture));
  const float* scores = found.scores.const_data_ptr<float>();
  Lesson lesson;
  for (const int64_t i : by_score(scores, found.scores.numel())) {
    const int64_t label = found.classes.const_data_ptr<int64_t>()[i];
    if (label < 0 || label >= static_cast<int64_t>(task.labels.size()))
      return unprocessable(fmt::format("{} gave the class {}; the task's labels are 0 to {}",
                                       teacher.path, label, task.labels.size() - 1),
                           teacher.path);
    const auto box = box_of(found.boxes.const_data_ptr<float>() + 4 * i, teacher);
    if (!box) continue;
    if (scores[i] < teacher.confidence) {
      ++lesson.unsure_boxes;
      continue;
    }
    lesson.confidence = scores[i];  // becomes the lowest confidence of the kept boxes
    lesson.boxes.push_back({task.labels[static_cast<size_t>(label)], *box});
  }
  if (lesson.boxes.empty()) lesson.confidence = 1;  // no objects; boxes are counted separately
  return lesson;
}

Result<std::vector<Lesson>> lessons_of(const Task& task, TorchScriptFile& file,
                                       std::span<const Sample> samples) {
  VALORA_TRY(pictures, script_input(*task.teacher, samples));
  if (task.teacher->output == TeacherSource::Output::kScores)
    return score_lessons(task, file, pictures);
  std::vector<Lesson> lessons;
  for (int64_t i = 0; i < pictures.size(0); ++i) {
    auto lesson = box_lesson(task, file, pictures.narrow(0, i, 1));
    if (!lesson.ok())
      return Error{lesson.error().code,
                   samples[static_cast<size_t>(i)].origin + ": " + lesson.error().message,
                   {}};
    lessons.push_back(std::move(lesson).value());
  }
  return lessons;
}

}  // namespace

Result<std::vector<Lesson>> ask_torchscript(const Task& task, std::span<const Sample> inputs,
                                            const TeacherOptions& options) {
  VALORA_CHECK(check(task));
  VALORA_TRY(file, TorchScriptFile::load(task.teacher->path));
  const size_t batch = static_cast<size_t>(std::max(1, options.batch));
  std::vector<Lesson> lessons;
  for (size_t begin = 0; begin < inputs.size(); begin += batch) {
    if (options.stop.stop_requested()) return stopped();
    VALORA_TRY(some, lessons_of(task, file,
                                inputs.subspan(begin, std::min(batch, inputs.size() - begin))));
    std::ranges::move(some, std::back_inserter(lessons));
    if (options.progress)
      options.progress(static_cast<int>(lessons.size()), static_cast<int>(inputs.size()));
  }
  return lessons;
}

}  // namespace valora::generator
