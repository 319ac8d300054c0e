#include "generator/data/coco_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/json/json.h"
#include "base/text/strings.h"

namespace valora::generator {
namespace {

constexpr size_t kMaxBytes = size_t{2} << 30;
constexpr int kMaxJsonDepth = 32;
constexpr size_t kMaxKept = 4096;  // values per element
// The depths in nlohmann's parser callback: {"images": [{"id": …
constexpr int kSectionDepth = 1, kElementDepth = 2, kFieldDepth = 3;

// Thrown in the parser's callback to abort parsing; caught in read_coco_file.
struct Refusal {
  Error error;
};

Error no_object() {
  return invalid("must be a JSON object with \"images\", \"annotations\", \"categories\"");
}

std::string name_of(const Json& element, const std::string& what, size_t place) {
  const auto id = required_field<int64_t>(element, "id");
  return id.ok() ? fmt::format("{} {}", what, *id) : fmt::format("{} number {}", what, place + 1);
}

Result<CocoImage> read_image(const Json& element) {
  VALORA_TRY(id, required_field<int64_t>(element, "id"));
  VALORA_TRY(file, required_field<std::string>(element, "file_name"));
  VALORA_TRY(width, optional_field<int32_t>(element, "width"));
  VALORA_TRY(height, optional_field<int32_t>(element, "height"));
  if (width.has_value() != height.has_value())
    return invalid("\"width\" and \"height\" must be given together", "width");
  if (width && (*width < 1 || *height < 1))
    return invalid("\"width\" and \"height\" must be at least 1", "width");
  return CocoImage{id, std::move(file), width.value_or(0), height.value_or(0)};
}

Result<CocoAnnotation> read_annotation(const Json& element) {
  CocoAnnotation annotation;
  VALORA_TRY(id, required_field<int64_t>(element, "id"));
  VALORA_TRY(image, required_field<int64_t>(element, "image_id"));
  VALORA_TRY(category, required_field<int64_t>(element, "category_id"));
  VALORA_TRY(crowd, field_or<int32_t>(element, "iscrowd", 0));
  const auto box = element.find("bbox");
  const bool fits =
      box != element.end() && box->is_array() && box->size() == 4 &&
      std::all_of(box->begin(), box->end(), [](const Json& number) { return number.is_number(); });
  if (!fits) return invalid("\"bbox\" must be four numbers [x, y, width, height]", "bbox");
  annotation.id = id, annotation.image = image, annotation.category = category,
  annotation.crowd = crowd != 0;
  for (size_t i = 0; i < 4; ++i) annotation.box[i] = (*box)[i].get<double>();
  return annotation;
}

class CocoReader {
 public:
  // nlohmann's parser_callback_t: false discards the parsed value.
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using enum Json::parse_event_t;
    if (depth > kMaxJsonDepth)
      throw Refusal{invalid(fmt::format("nested deeper than {} levels", kMaxJsonDepth))};
    if (event == key) return take_key(depth, parsed.get_ref<const std::string&>());
    if (dropping_ && depth >= *dropping_) return false;
    if (depth == kSectionDepth) {
      if (section_.empty()) throw Refusal{no_object()};
      if (event == array_start)
        seen_.insert(section_);
      else if (event != array_end)
        throw Refusal{invalid("\"" + section_ + "\" must be a list", section_)};
    }
    if (event == value || event == array_start) check_value(depth);
    if (event != object_end || depth != kElementDepth) return true;
    take_element(parsed);
    return false;
  }

  Result<CocoFile> take() {
    for (const char* section : {"images", "annotations", "categories"})
      if (!seen_.contains(section))
        return invalid(fmt::format("it has no list \"{}\"", section), section);
    return std::move(file_);
  }

 private:
  static bool is_known(const std::string& section) {
    return section == "images" || section == "annotations" || section == "categories";
  }

  bool take_key(int depth, const std::string& key) {
    if (dropping_ && depth > *dropping_) return false;
    static const std::set<std::string> kFields{"id",       "file_name",   "width", "height", "name",
                                               "image_id", "category_id", "bbox",  "iscrowd"};
    if (depth == kSectionDepth) {
      if (is_known(key) && seen_.contains(key))
        throw Refusal{invalid("it has \"" + key + "\" twice", key)};
      section_ = key;
    }
    const bool keep =
        depth == kSectionDepth ? is_known(key) : depth == kFieldDepth && kFields.contains(key);
    dropping_ = keep ? std::nullopt : std::optional(depth);
    return keep;
  }

  // Checks values in the known sections, except inside dropped values.
  void check_value(int depth) {
    if (depth == kElementDepth)
      throw Refusal{invalid(fmt::format("all of \"{}\" must be objects", section_), section_)};
    if (depth >= kFieldDepth && ++kept_ > kMaxKept)
      throw Refusal{invalid(
          fmt::format("one of \"{}\" has more than {} values", section_, kMaxKept), section_)};
  }

  void take_element(const Json& element) {
    kept_ = 0;
    if (section_ == "images") {
      file_.images.push_back(named(read_image(element), element, "image", file_.images.size()));
    } else if (section_ == "annotations") {
      file_.annotations.push_back(
          named(read_annotation(element), element, "annotation", file_.annotations.size()));
    } else {
      const auto id = named(required_field<int64_t>(element, "id"), element, "category",
                            file_.categories.size());
      auto name = named(required_field<std::string>(element, "name"), element, "category",
                        file_.categories.size());
      if (name.empty())
        throw Refusal{invalid(fmt::format("category {} has an empty name", id), "name")};
      if (!file_.categories.emplace(id, std::move(name)).second)
        throw Refusal{invalid(fmt::format("category {} is repeated", id), "id")};
    }
  }

  template <typename T>
  static T named(Result<T> result, const Json& element, const std::string& what, size_t place) {
    if (result.ok()) return std::move(*result);
    const Error& error = result.error();
    throw Refusal{
        Error{error.code, name_of(element, what, place) + ": " + error.message, error.param}};
  }

  std::string section_;
  std::optional<int> dropping_;  // depth of the key whose value is being dropped
  std::set<std::string> seen_;
  size_t kept_ = 0;
  CocoFile file_;
};

}  // namespace

Result<CocoFile> read_coco_file(const std::string& path) {
  std::error_code fault;
  std::ifstream stream(path, std::ios::binary);
  if (!std::filesystem::is_regular_file(path, fault) || !stream)
    return invalid("cannot be read as a file", path);
  if (std::filesystem::file_size(path, fault) > kMaxBytes)
    return Error{ErrorCode::kPayloadTooLarge, fmt::format("larger than {} bytes", kMaxBytes), path};
  CocoReader reader;
  try {
    const Json rest = Json::parse(stream, std::ref(reader));
    if (!rest.is_object()) return no_object();
  } catch (const Refusal& refusal) {
    return refusal.error;
  } catch (const Json::exception& e) {
    return invalid("this is not JSON: " + reason_of(e));
  }
  return reader.take();
}

}  // namespace valora::generator
