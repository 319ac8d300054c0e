#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/log/log.h"
#include "generator/data/coco_file.h"
#include "generator/data/datasets.h"
#include "generator/data/media_files.h"
#include "generator/data/sample_readers.h"

namespace valora::generator {
namespace {

Result<CocoImage> with_size(CocoImage image, const std::string& picture) {
  if (image.width > 0) return image;
  VALORA_TRY(size, picture_size(picture));
  image.width = size.width;
  image.height = size.height;
  return image;
}

// The boxes of each image, by its index in file.images, excluding crowds.
class BoxesOfImages {
 public:
  static Result<BoxesOfImages> gather(const CocoFile& file) {
    BoxesOfImages all(file.images.size());
    std::unordered_map<int64_t, size_t> places;
    for (size_t i = 0; i < file.images.size(); ++i)
      if (!places.emplace(file.images[i].id, i).second)
        return invalid(fmt::format("image {} is repeated", file.images[i].id));
    for (size_t i = 0; i < file.annotations.size(); ++i) {
      const CocoAnnotation& annotation = file.annotations[i];
      const auto place = places.find(annotation.image);
      if (place == places.end())
        return invalid(fmt::format("annotation {} refers to image {}, which does not exist",
                                   annotation.id, annotation.image));
      if (!file.categories.contains(annotation.category))
        return invalid(fmt::format("annotation {} refers to category {}, which does not exist",
                                   annotation.id, annotation.category));
      if (annotation.crowd)
        ++all.crowds_;
      else
        all.of_[place->second].push_back(&annotation);
    }
    return all;
  }

  const std::vector<const CocoAnnotation*>& operator[](size_t image) const { return of_[image]; }
  int64_t crowds() const { return crowds_; }

 private:
  explicit BoxesOfImages(size_t images) : of_(images) {}

  std::vector<std::vector<const CocoAnnotation*>> of_;
  int64_t crowds_ = 0;
};

Result<std::vector<LabelledBox>> boxes_of(const CocoImage& image,
                                          const std::vector<const CocoAnnotation*>& annotations,
                                          const CocoFile& file) {
  std::vector<LabelledBox> boxes;
  for (const CocoAnnotation* annotation : annotations) {
    const auto& [x, y, width, height] = annotation->box;
    const auto box = box_within(x, y, x + width, y + height, image.width, image.height);
    if (!box.ok())
      return invalid(fmt::format("annotation {} of image {}: {}", annotation->id, image.id,
                                 box.error().message));
    boxes.push_back({file.categories.at(annotation->category), *box});
  }
  return boxes;
}

// One sample per label, in the order of the labels' first boxes.
std::vector<Sample> split_by_label(const Sample& whole) {
  std::vector<Sample> parts;
  for (const LabelledBox& box : whole.boxes) {
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Sample& sample) {
      return sample.boxes[0].label == box.label;
    });
    if (part == parts.end()) {
      parts.push_back({.origin = whole.origin, .media = whole.media});
      part = std::prev(parts.end());
    }
    part->boxes.push_back(box);
  }
  return parts;
}

struct Reading {
  const DataSource& source;
  const Task& task;
  const SampleChecks& checks;
  const CocoFile& file;
  const BoxesOfImages& boxes;
};

Result<Sample> read_image(const Reading& reading, size_t place) {
  const CocoImage& image = reading.file.images[place];
  const std::string name = fmt::format("image {}", image.id);
  Sample sample;
  sample.origin = fmt::format("{}: {}", reading.source.path, name);
  auto picture = find_medium(media_root_of(reading.source), image.file);
  if (!picture.ok()) return invalid(name + ": " + picture.error().message, "file_name");
  sample.media.push_back({Medium::Kind::kImage, {*picture}});
  VALORA_TRY(sized, with_size(image, *picture));
  VALORA_TRY(boxes, boxes_of(sized, reading.boxes[place], reading.file));
  sample.boxes = std::move(boxes);
  const Status fits = reading.checks.check(sample);
  if (!fits.ok()) return invalid(name + ": " + fits.error().message, fits.error().param);
  return sample;
}

Result<std::vector<Sample>> read_images(const Reading& reading) {
  const bool grounding = reading.task.type == TaskType::kGrounding;
  const bool asks_label = question_template(reading.task).find("{label}") != std::string::npos;
  const bool needs_box = grounding || (asks_label && reading.task.labels.empty());
  const size_t limit = reading.source.limit ? static_cast<size_t>(*reading.source.limit) : SIZE_MAX;
  std::vector<Sample> samples;
  int64_t without_box = 0;
  for (size_t i = 0; i < reading.file.images.size() && samples.size() < limit; ++i) {
    if (needs_box && reading.boxes[i].empty()) {
      ++without_box;
      continue;
    }
    VALORA_TRY(sample, read_image(reading, i));
    if (!grounding || !asks_label) {
      samples.push_back(std::move(sample));
      continue;
    }
    for (Sample& part : split_by_label(sample))
      if (samples.size() < limit) samples.push_back(std::move(part));
  }
  if (without_box > 0)
    spdlog::warn("{}: skipped {} images without a box", reading.source.path, without_box);
  if (reading.boxes.crowds() > 0)
    spdlog::warn("{}: skipped {} annotations of crowds", reading.source.path,
                 reading.boxes.crowds());
  if (samples.empty()) return invalid("it has no sample");
  return samples;
}

Result<std::vector<Sample>> samples_of_file(const DataSource& source, const Task& task,
                                            const SampleChecks& checks) {
  VALORA_TRY(file, read_coco_file(source.path));
  VALORA_TRY(boxes, BoxesOfImages::gather(file));
  return read_images({source, task, checks, file, boxes});
}

}  // namespace

Result<std::vector<Sample>> read_coco(const DataSource& source, const Task& task,
                                      const SampleChecks& checks) {
  auto samples = samples_of_file(source, task, checks);
  if (!samples.ok()) {
    const Error& error = samples.error();
    return Error{error.code, source.path + ": " + error.message, error.param};
  }
  return samples;
}

}  // namespace valora::generator
