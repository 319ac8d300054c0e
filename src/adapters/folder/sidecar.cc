#include "adapters/folder/sidecar.h"

#include <algorithm>
#include <set>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "base/text/visible_text.h"

namespace valora::adapters {
namespace {

// Small, because the texts are listed with every adapter and thousands may be loaded.
constexpr size_t kMaxValueBytes = 256;
constexpr size_t kMaxLabelBytes = 1024;
constexpr size_t kMaxTextBytes = size_t{8} << 10;
constexpr size_t kMostUnknownKeys = 20;

constexpr JsonLimits kSidecarLimits{
    .max_bytes = size_t{16} << 20, .max_depth = 16, .max_values = size_t{1} << 19};

void warn_of_others(const Json& object, std::initializer_list<const char*> known,
                    std::vector<std::string>& warnings) {
  for (const auto& [key, value] : object.items())
    if (warnings.size() < kMostUnknownKeys &&
        std::none_of(known.begin(), known.end(), [&](const char* k) { return key == k; }))
      warnings.push_back("valora.json: the key \"" + shortened(key) +
                         "\" is unknown and was ignored");
}

// An absent text is empty.
Result<std::string> read_text(const Json& object, const char* key, size_t max_bytes) {
  VALORA_TRY(text, field_or<std::string>(object, key, ""));
  if (text.size() <= max_bytes) return text;
  return unprocessable("\"" + std::string(key) + "\" has " + std::to_string(text.size()) +
                           " bytes; at most " + std::to_string(max_bytes) + " are read",
                       key);
}

// Restricted like adapter names, because head names reach the log, metric labels and lists.
Result<std::string> read_name(const Json& object, const char* key) {
  VALORA_TRY(name, read_text(object, key, kMaxValueBytes));
  if (!has_hidden_characters(name)) return name;
  return unprocessable(
      "\"" + std::string(key) + "\" has control characters or bidirectional controls", key);
}

Result<std::optional<ProblemType>> read_problem_type(const Json& head) {
  VALORA_TRY(name, optional_field<std::string>(head, "problem_type"));
  if (!name) return std::optional<ProblemType>{};
  if (*name == "single_label_classification") return std::optional(ProblemType::kSingleLabel);
  if (*name == "multi_label_classification") return std::optional(ProblemType::kMultiLabel);
  if (*name == "regression") return std::optional(ProblemType::kRegression);
  return unprocessable(
      "problem_type \"" + shortened(*name) +
          "\" is not one of single_label_classification, multi_label_classification, regression",
      "problem_type");
}

Result<std::vector<std::string>> read_labels(const Json& head) {
  std::vector<std::string> labels;
  const Json value = head.value("labels", Json());
  if (value.is_null()) return labels;
  const Error wrong = invalid("\"labels\" must be a list of strings", "labels");
  if (!value.is_array() || value.empty()) return wrong;
  for (const Json& label : value) {
    if (!label.is_string()) return wrong;
    if (label.get_ref<const std::string&>().size() > kMaxLabelBytes)
      return unprocessable("a label has more than " + std::to_string(kMaxLabelBytes) + " bytes",
                           "labels");
    labels.push_back(label.get<std::string>());
  }
  return labels;
}

Result<HeadNotes> read_head(const Json& head, std::vector<std::string>& warnings) {
  if (!head.is_object()) return invalid("each of \"heads\" must be an object", "heads");
  VALORA_CHECK(required_field<std::string>(head, "name"));
  VALORA_TRY(name, read_name(head, "name"));
  VALORA_TRY(labels, read_labels(head));
  VALORA_TRY(problem_type, read_problem_type(head));
  VALORA_TRY(pooling, field_or<std::string>(head, "pooling", "last"));
  VALORA_TRY(add_generation_prompt, field_or<bool>(head, "add_generation_prompt", false));
  if (pooling != "last")
    return unprocessable("pooling \"" + shortened(pooling) + "\" is not supported, only \"last\"",
                         "pooling");
  VALORA_TRY(question, read_text(head, "question", kMaxTextBytes));
  warn_of_others(head,
                 {"name", "labels", "problem_type", "pooling", "add_generation_prompt", "question"},
                 warnings);
  return HeadNotes{std::move(name), std::move(labels), problem_type, add_generation_prompt,
                   std::move(question)};
}

Status read_heads(const Json& object, Sidecar& sidecar) {
  const Json heads = object.value("heads", Json());
  if (heads.is_null()) return {};
  if (!heads.is_array()) return invalid("\"heads\" must be a list", "heads");
  std::set<std::string> seen;
  for (const Json& head : heads) {
    VALORA_TRY(notes, read_head(head, sidecar.warnings));
    if (!seen.insert(notes.name).second)
      return invalid("the head \"" + shortened(notes.name) + "\" is described twice", "heads");
    sidecar.heads.push_back(std::move(notes));
  }
  return {};
}

Result<Sidecar> parse_sidecar(const Json& object) {
  if (!object.is_object()) return invalid("not a JSON object");
  Sidecar sidecar;
  VALORA_TRY(task, read_name(object, "task"));
  VALORA_TRY(description, read_text(object, "description", kMaxTextBytes));
  VALORA_TRY(question, read_text(object, "question", kMaxTextBytes));
  sidecar.task = std::move(task);
  sidecar.description = std::move(description);
  sidecar.question = std::move(question);
  VALORA_CHECK(read_heads(object, sidecar));
  warn_of_others(object, {"task", "description", "question", "modality", "answers", "heads"},
                 sidecar.warnings);
  return sidecar;
}

}  // namespace

Result<Sidecar> read_sidecar(const InputFolder& folder) {
  constexpr const char* kName = "valora.json";
  if (!folder.has(kName)) return Sidecar{};
  VALORA_TRY(text, folder.text(kName, kSidecarLimits.max_bytes));
  VALORA_TRY(object, parse_json(text, folder.path_of(kName), kSidecarLimits));
  auto sidecar = parse_sidecar(object);
  if (!sidecar.ok())
    return Error{sidecar.error().code, "valora.json: " + sidecar.error().message,
                 sidecar.error().param};
  return sidecar;
}

}  // namespace valora::adapters
