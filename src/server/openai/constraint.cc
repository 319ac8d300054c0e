#include "server/openai/generation_fields.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "api/options.h"
#include "base/json/parse_ordered.h"
#include "base/text/strings.h"
#include "server/openai/fields.h"

namespace valora::server {
namespace {

using Kind = AnswerConstraint::Kind;
using FoundConstraint = std::optional<AnswerConstraint>;
using Path = std::initializer_list<const char*>;

std::string joined(Path path) {
  std::string out;
  for (const char* key : path) out += (out.empty() ? "" : ".") + std::string(key);
  return out;
}

const Json& at(const Json& body, Path path) {
  const Json* value = &body;
  for (const char* key : path) value = &member(*value, key);
  return *value;
}

class ConstraintFields {
 public:
  ConstraintFields(const Json& body, std::string_view text) : body_(body), text_(text) {}

  Result<FoundConstraint> read() {
    VALORA_CHECK(read_format());
    VALORA_CHECK(read_structured());
    if (!unused(body_, "guided_json")) VALORA_CHECK(read_schema({"guided_json"}, true));
    if (!unused(body_, "guided_regex")) VALORA_CHECK(read_string({"guided_regex"}, Kind::kRegex));
    if (!unused(body_, "guided_choice")) VALORA_CHECK(read_choices({"guided_choice"}));
    if (!unused(body_, "guided_grammar"))
      VALORA_CHECK(read_string({"guided_grammar"}, Kind::kEbnf));
    return std::move(found_);
  }

 private:
  // The same form under an older and a newer name is one form: clients send both.
  bool is_known(const AnswerConstraint& constraint) const {
    return found_ && found_->kind == constraint.kind && found_->text == constraint.text &&
           found_->choices == constraint.choices && found_->strict == constraint.strict;
  }

  Status add(AnswerConstraint constraint) {
    if (is_known(constraint)) return {};
    if (found_)
      return invalid(fmt::format("\"{}\" and \"{}\" both define the form of the answer; send one",
                                 found_->param, constraint.param),
                     constraint.param);
    found_ = std::move(constraint);
    return {};
  }

  // The field's JSON with keys in the client's order, which answers keep.
  std::string json_of(Path path) const {
    const auto whole = parse_ordered(text_);
    const OrderedJson* value = &whole;
    for (const char* key : path) value = &value->at(key);
    return value->dump();
  }

  Status read_schema(Path path, bool strict) {
    const Json& value = at(body_, path);
    if (value.is_null()) return {};
    if (value.is_string())
      return add({Kind::kJsonSchema, value.get<std::string>(), {}, strict, *path.begin()});
    if (!value.is_object() && !value.is_boolean())
      return invalid(fmt::format("\"{}\" must be a JSON schema", joined(path)), *path.begin());
    return add({Kind::kJsonSchema, json_of(path), {}, strict, *path.begin()});
  }

  Status read_string(Path path, Kind kind) {
    const Json& value = at(body_, path);
    if (value.is_null()) return {};
    if (!value.is_string())
      return invalid(fmt::format("\"{}\" must be a string", joined(path)), *path.begin());
    return add({kind, value.get<std::string>(), {}, true, *path.begin()});
  }

  Status read_choices(Path path) {
    const Json& value = at(body_, path);
    if (value.is_null()) return {};
    AnswerConstraint constraint{Kind::kChoice, {}, {}, true, *path.begin()};
    if (!value.is_array() || value.empty())
      return invalid(fmt::format("\"{}\" must be a list of strings", joined(path)), *path.begin());
    for (const Json& choice : value) {
      if (!choice.is_string())
        return invalid(fmt::format("\"{}\" must be a list of strings", joined(path)),
                       *path.begin());
      constraint.choices.push_back(choice.get<std::string>());
    }
    return add(std::move(constraint));
  }

  Status read_tag(Path path) {
    const Json& value = at(body_, path);
    if (value.is_null()) return {};
    if (value.is_string()) return read_string(path, Kind::kStructuralTag);
    return add({Kind::kStructuralTag, json_of(path), {}, true, *path.begin()});
  }

  Status read_format() {
    const char* const field = "response_format";
    const Json& format = member(body_, field);
    if (format.is_null()) return {};
    if (!format.is_object()) return invalid("\"response_format\" must be an object", field);
    const Json& type = member(format, "type");
    if (!type.is_string()) return invalid("\"response_format.type\" must be a string", field);
    if (type == "text") return {};
    if (type == "json_object" && member(format, "schema").is_null())
      return add({Kind::kJsonObject, {}, {}, true, field});
    if (type == "json_object") return read_schema({field, "schema"}, true);
    if (type == "structural_tag") return read_tag({field});
    if (type == "labels") return read_labels(format);
    if (type == "boxes") return read_boxes(format);
    if (type != "json_schema")
      return not_implemented(
          fmt::format("\"response_format\" of type \"{}\" is not supported by this server",
                      shortened(type.get<std::string>(), 40)),
          field);
    return read_named_schema(format);
  }

  static constexpr size_t kMostBoxLabels = 1000;

  Result<bool> format_flag(const Json& format, const char* key) const {
    const Json& value = member(format, key);
    if (!value.is_null() && !value.is_boolean())
      return invalid(fmt::format("\"response_format.{}\" must be a boolean", key),
                     "response_format");
    return value == true;
  }

  Status read_labels(const Json& format) {
    AnswerConstraint constraint{Kind::kLabels, {}, {}, true, "response_format"};
    VALORA_TRY(confidence, format_flag(format, "confidence"));
    constraint.output.confidence = confidence;
    return add(std::move(constraint));
  }

  Result<ShapeOutput> read_output(const Json& format) const {
    using Boxes = ShapeOutput::Boxes;
    constexpr std::array kForms = {
        std::pair{"corners", Boxes::kCorners}, std::pair{"bbox_2d", Boxes::kBbox2d},
        std::pair{"coco", Boxes::kCoco}, std::pair{"yolo", Boxes::kYolo}};
    ShapeOutput out;
    VALORA_TRY(confidence, format_flag(format, "confidence"));
    VALORA_TRY(sizes, format_flag(format, "sizes"));
    out.confidence = confidence;
    out.sizes = sizes;
    const Json& form = member(format, "format");
    if (form.is_null()) return out;
    for (const auto& [name, boxes] : kForms)
      if (form == name) {
        out.boxes = boxes;
        return out;
      }
    return invalid("\"response_format.format\" must be corners, bbox_2d, coco or yolo",
                   "response_format");
  }

  // {"type": "boxes"}, with "labels" of which each box has one, and how boxes are written.
  Status read_boxes(const Json& format) {
    const char* const field = "response_format";
    AnswerConstraint constraint{Kind::kBoxes, {}, {}, true, field};
    VALORA_TRY(output, read_output(format));
    constraint.output = output;
    const Json& labels = member(format, "labels");
    if (labels.is_null()) return add(std::move(constraint));
    if (!labels.is_array() || labels.empty() || labels.size() > kMostBoxLabels)
      return invalid(fmt::format("\"response_format.labels\" must be a list of 1 to {} strings",
                                 kMostBoxLabels),
                     field);
    for (const Json& label : labels) {
      if (!label.is_string() || label.get_ref<const std::string&>().empty())
        return invalid("\"response_format.labels\" must be a list of strings that are not empty",
                       field);
      constraint.choices.push_back(label.get<std::string>());
    }
    return add(std::move(constraint));
  }

  // OpenAI's {"json_schema": {"name", "strict", "schema"}}, or the same without the outer object.
  Status read_named_schema(const Json& format) {
    const char* const field = "response_format";
    const bool flat =
        member(format, "json_schema").is_null() && !member(format, "schema").is_null();
    const Json& given = flat ? format : member(format, "json_schema");
    if (!given.is_object())
      return invalid("\"response_format.json_schema\" must be an object", field);
    if (!flat && !member(format, "schema").is_null())
      return invalid("\"response_format\" has both \"schema\" and \"json_schema\"; send one",
                     field);
    if (!member(given, "name").is_null() && !member(given, "name").is_string())
      return invalid("\"response_format.json_schema.name\" must be a string", field);
    const Json& strict = member(given, "strict");
    if (!strict.is_null() && !strict.is_boolean())
      return invalid("\"response_format.json_schema.strict\" must be a boolean", field);
    if (member(given, "schema").is_null())
      return invalid("\"response_format.json_schema.schema\" is missing", field);
    if (flat) return read_schema({field, "schema"}, strict != false);
    return read_schema({field, "json_schema", "schema"}, strict != false);
  }

  Status read_structured() {
    const char* const field = "structured_outputs";
    const Json& given = member(body_, field);
    if (given.is_null()) return {};
    if (!given.is_object()) return invalid("\"structured_outputs\" must be an object", field);
    for (const auto& [key, value] : given.items()) {
      const bool known = key == "json" || key == "regex" || key == "choice" || key == "grammar" ||
                         key == "json_object" || key == "structural_tag" ||
                         key == "json_whitespace" || key == "disable_any_whitespace";
      if (!known && !unused(given, key))
        return not_implemented(
            fmt::format("\"structured_outputs.{}\" is not supported by this server{}",
                        shortened(key, 60),
                        key == "whitespace_pattern" ? "; send \"json_whitespace\" instead" : ""),
            field);
    }
    const Json& any = member(given, "json_object");
    if (!any.is_null() && !any.is_boolean())
      return invalid("\"structured_outputs.json_object\" must be a boolean", field);
    if (any == true) VALORA_CHECK(add({Kind::kJsonObject, {}, {}, true, field}));
    VALORA_CHECK(read_schema({field, "json"}, true));
    VALORA_CHECK(read_string({field, "regex"}, Kind::kRegex));
    VALORA_CHECK(read_choices({field, "choice"}));
    VALORA_CHECK(read_string({field, "grammar"}, Kind::kEbnf));
    return read_tag({field, "structural_tag"});
  }

  const Json& body_;
  std::string_view text_;
  FoundConstraint found_;
};

}  // namespace

Result<std::optional<JsonSpacing>> parse_json_whitespace(const Json& body) {
  const char* const field = "structured_outputs";
  const Json& given = member(body, field);
  if (!given.is_object()) return std::optional<JsonSpacing>();  // parse_constraint() refuses others
  const Json& name = member(given, "json_whitespace");
  const Json& compact = member(given, "disable_any_whitespace");  // vLLM's name
  if (!compact.is_null() && !compact.is_boolean())
    return invalid("\"structured_outputs.disable_any_whitespace\" must be a boolean", field);
  const auto spacing = parse_json_spacing(name.is_string() ? name.get<std::string>() : "");
  if (!name.is_null() && !spacing.ok())
    return invalid(
        "\"structured_outputs.json_whitespace\" must be \"bounded\", \"compact\" or \"free\"",
        field);
  if (name.is_null())
    return compact == true ? std::optional(JsonSpacing::kCompact) : std::optional<JsonSpacing>();
  if (compact == true && *spacing != JsonSpacing::kCompact)
    return invalid(
        "\"structured_outputs\" has \"json_whitespace\" and \"disable_any_whitespace\"; send one",
        field);
  return std::optional(*spacing);
}

Result<FoundConstraint> parse_constraint(const Json& body, std::string_view text) {
  return ConstraintFields(body, text).read();
}

}  // namespace valora::server
