#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "generator/data/media_files.h"
#include "generator/data/sample_readers.h"

namespace valora::generator {
namespace {

constexpr size_t kMaxLine = size_t{1} << 20;
constexpr JsonLimits kLineLimits{
    .max_bytes = kMaxLine, .max_depth = 8, .max_values = 65'536, .unique_keys = true};
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

const Json* find(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

// Reads a list of non-empty texts; empty if the key is absent.
Result<std::vector<std::string>> texts(const Json& object, const char* key) {
  std::vector<std::string> values;
  const Json* list = find(object, key);
  if (!list) return values;
  const Error wrong = invalid(fmt::format("\"{}\" must be a list of texts", key), key);
  if (!list->is_array() || list->empty()) return wrong;
  for (const Json& item : *list) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) return wrong;
    values.push_back(item.get<std::string>());
  }
  return values;
}

// Reads a non-empty text; empty if the key is absent.
Result<std::string> text(const Json& object, const char* key) {
  VALORA_TRY(value, optional_field<std::string>(object, key));
  if (value && value->empty()) return invalid(fmt::format("\"{}\" is empty", key), key);
  return value.value_or("");
}

// `one` and `several` are alternative keys for the same thing; a line may have only one of them.
Result<std::vector<std::string>> one_or_several(const Json& object, const char* one,
                                                const char* several) {
  if (find(object, one) && find(object, several))
    return invalid(fmt::format("\"{}\" and \"{}\" exclude each other", one, several), several);
  VALORA_TRY(single, text(object, one));
  if (!single.empty()) return std::vector{std::move(single)};
  return texts(object, several);
}

Status read_media(const Json& object, const std::string& root, Sample& sample) {
  int kinds = 0;
  for (const char* key : {"image", "images", "video", "frames"})
    kinds += find(object, key) != nullptr;
  if (kinds != 1)
    return invalid("exactly one of \"image\", \"images\", \"video\", \"frames\" is required",
                   "image");
  VALORA_TRY(images, one_or_several(object, "image", "images"));
  VALORA_TRY(frames, one_or_several(object, "video", "frames"));
  for (const std::string& image : images) {
    VALORA_TRY(path, find_medium(root, image));
    sample.media.push_back({Medium::Kind::kImage, {std::move(path)}});
  }
  if (frames.empty()) return {};
  sample.media.push_back({Medium::Kind::kVideo, {}});
  for (const std::string& frame : frames) {
    VALORA_TRY(path, find_medium(root, frame));
    sample.media.back().files.push_back(std::move(path));
  }
  return {};
}

Status read_question(const Json& object, Sample& sample) {
  if (find(object, "question") && find(object, "prompt"))
    return invalid("\"question\" and \"prompt\" exclude each other", "prompt");
  VALORA_TRY(question, text(object, "question"));
  VALORA_TRY(prompt, text(object, "prompt"));
  sample.question = question.empty() ? std::move(prompt) : std::move(question);
  return {};
}

Status read_answers(const Json& object, Sample& sample) {
  VALORA_TRY(answer, text(object, "answer"));
  VALORA_TRY(answers, texts(object, "answers"));
  sample.answer = std::move(answer);
  sample.references = std::move(answers);
  return {};
}

struct Extent {
  double width = 1, height = 1;
};

// The picture's size in the unit of the line's boxes.
Result<Extent> extent_of(const Json& object, const Sample& sample) {
  VALORA_TRY(unit, field_or<std::string>(object, "box_unit", "share"));
  if (unit == "share") return Extent{};
  if (unit != "pixels") return invalid("\"box_unit\" must be \"share\" or \"pixels\"", "box_unit");
  VALORA_TRY(width, optional_field<int32_t>(object, "width"));
  VALORA_TRY(height, optional_field<int32_t>(object, "height"));
  if (width.has_value() != height.has_value())
    return invalid("\"width\" and \"height\" must be given together", width ? "height" : "width");
  if (width && (*width < 1 || *height < 1))
    return invalid("\"width\" and \"height\" must be at least 1", "width");
  if (width) return Extent{double(*width), double(*height)};
  if (sample.media.size() != 1 || sample.media[0].kind != Medium::Kind::kImage)
    return invalid("boxes in pixels need one picture", "boxes");
  VALORA_TRY(size, picture_size(sample.media[0].files[0]));
  return Extent{double(size.width), double(size.height)};
}

Result<std::array<double, 4>> corners(const Json& list) {
  std::array<double, 4> numbers{};
  const bool fits = list.is_array() && list.size() == 4;
  for (size_t i = 0; fits && i < 4; ++i) {
    if (!list[i].is_number())
      return invalid("a box must be four numbers [x0, y0, x1, y1]", "boxes");
    numbers[i] = list[i].get<double>();
  }
  if (!fits) return invalid("a box must be four numbers [x0, y0, x1, y1]", "boxes");
  return numbers;
}

Result<LabelledBox> read_box(const Json& item, const std::string& line_label,
                             const Extent& extent) {
  std::string label = line_label;
  if (item.is_object()) {
    VALORA_TRY(own, text(item, "label"));
    if (!own.empty()) label = std::move(own);
  }
  const Json* list = item.is_object() ? find(item, "box") : &item;
  if (!list) return invalid("one of \"boxes\" has no \"box\"", "boxes");
  VALORA_TRY(v, corners(*list));
  VALORA_TRY(box, box_within(v[0], v[1], v[2], v[3], extent.width, extent.height));
  return LabelledBox{std::move(label), box};
}

Status read_boxes(const Json& object, Sample& sample) {
  const Json* list = find(object, "boxes");
  if (!list) return invalid("\"boxes\" is missing", "boxes");
  if (!list->is_array()) return invalid("\"boxes\" must be a list", "boxes");
  VALORA_TRY(label, text(object, "label"));
  VALORA_TRY(extent, extent_of(object, sample));
  for (const Json& item : *list) {
    VALORA_TRY(box, read_box(item, label, extent));
    sample.boxes.push_back(std::move(box));
  }
  return {};
}

Result<Sample> read_object(const Json& object, const std::string& media_root,
                           const SampleChecks& checks) {
  if (!object.is_object()) return invalid("a line must be a JSON object");
  Sample sample;
  VALORA_CHECK(read_media(object, media_root, sample));
  VALORA_CHECK(read_question(object, sample));
  if (checks.labelled() && has_boxes(checks.task().type)) {
    VALORA_CHECK(read_boxes(object, sample));
  } else if (checks.labelled()) {
    VALORA_CHECK(read_answers(object, sample));
    if (has_labels(checks.task().type)) {
      VALORA_TRY(labels, one_or_several(object, "label", "labels"));
      sample.labels = std::move(labels);
    }
  }
  VALORA_CHECK(checks.check(sample));
  return sample;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

}  // namespace

Result<Sample> read_jsonl_line(std::string_view line, const std::string& where,
                               const std::string& media_root, const SampleChecks& checks) {
  VALORA_TRY(object, parse_json(line, where + ": the line", kLineLimits));
  auto sample = read_object(object, media_root, checks);
  if (!sample.ok())
    return Error{sample.error().code, where + ": " + sample.error().message, sample.error().param};
  sample->origin = where;
  return sample;
}

Result<std::vector<Sample>> read_jsonl(const DataSource& source, const SampleChecks& checks) {
  std::error_code fault;
  std::ifstream file(source.path);
  if (!std::filesystem::is_regular_file(source.path, fault) || !file)
    return invalid(source.path + " cannot be read as a file", source.path);
  const std::string media_root = media_root_of(source);
  std::vector<Sample> samples;
  std::vector<char> buffer(kMaxLine + 1);
  for (int64_t number = 1; !source.limit || static_cast<int64_t>(samples.size()) < *source.limit;
       ++number) {
    file.getline(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const std::string where = fmt::format("{}:{}", source.path, number);
    if (file.bad()) return invalid(where + ": the file cannot be read to its end", source.path);
    if (file.eof() && file.gcount() == 0) break;
    if (file.fail() && !file.eof())
      return Error{ErrorCode::kPayloadTooLarge,
                   fmt::format("{}: the line is longer than {} bytes", where, kMaxLine)};
    // gcount includes the line break, if any.
    std::string_view line(buffer.data(), static_cast<size_t>(file.gcount()) - (file.eof() ? 0 : 1));
    if (number == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    if (is_blank(line)) continue;
    VALORA_TRY(sample, read_jsonl_line(line, where, media_root, checks));
    samples.push_back(std::move(sample));
  }
  if (samples.empty()) return invalid(source.path + " is empty: it has no sample", source.path);
  return samples;
}

}  // namespace valora::generator
