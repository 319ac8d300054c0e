#include "server/applications/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/files/file.h"
#include "base/text/strings.h"
#include "yaml/fields.h"

namespace valora::server {
namespace {

constexpr yaml::Limits kLimits;
constexpr size_t kLongestName = 128;
constexpr double kLongestTarget = 86'400;  // seconds
constexpr int kMostWaiting = 1'000'000;
constexpr double kHighestRate = 1e6;
constexpr double kHighestShare = 1000;

// Names are used as metric labels and as header values.
Status check_name(const yaml::Fields& fields, const std::string& name) {
  const bool fits = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
  if (fits && name.size() <= kLongestName) return {};
  return fields.error("name",
                      fmt::format(R"(is "{}"; use up to {} letters, digits, "-", "_" and ".")",
                                  shortened(name, 60), kLongestName));
}

Result<std::optional<double>> positive(const yaml::Fields& fields, std::string_view key,
                                       double most, const char* absent = "none") {
  VALORA_TRY(value, fields.number(key, 0, most));
  if (value && *value == 0)
    return fields.error(key, fmt::format("must be above 0; leave \"{}\" out for {}", key, absent));
  return value;
}

Status read_targets(const yaml::Fields& fields, Application& out) {
  VALORA_TRY(ttft, positive(fields, "ttft", kLongestTarget));
  VALORA_TRY(tpot, positive(fields, "tpot", kLongestTarget));
  VALORA_TRY(e2e, positive(fields, "e2e", kLongestTarget));
  out.ttft = ttft;
  out.tpot = tpot;
  out.e2e = e2e;
  return {};
}

Status read_limits(const yaml::Fields& fields, Application& out) {
  VALORA_TRY(priority, fields.integer("priority", INT32_MIN, INT32_MAX));
  VALORA_TRY(share, positive(fields, "share", kHighestShare, "1"));
  VALORA_TRY(max_waiting, fields.integer("max_waiting", 1, kMostWaiting));
  VALORA_TRY(rate, positive(fields, "rate", kHighestRate));
  out.priority = static_cast<int>(priority.value_or(0));
  out.share = share.value_or(1);
  if (max_waiting) out.max_waiting = static_cast<int>(*max_waiting);
  out.rate = rate;
  return {};
}

Result<Application> read_application(const yaml::Fields& fields) {
  Application out;
  VALORA_TRY(name, fields.required_text("name"));
  VALORA_CHECK(check_name(fields, name));
  VALORA_TRY(models, fields.texts("models"));
  out.name = std::move(name);
  out.models = std::move(models);
  VALORA_CHECK(read_targets(fields, out));
  VALORA_CHECK(read_limits(fields, out));
  return out;
}

// Names and models seen so far, and where.
struct Taken {
  std::map<std::string, int> names;           // name -> line
  std::map<std::string, std::string> models;  // model -> application
};

Status check_distinct(const yaml::Fields& fields, const Application& application, Taken& taken) {
  const auto [first, is_new] = taken.names.emplace(application.name, fields.line());
  if (!is_new)
    return fields.error("name",
                        fmt::format("is \"{}\", like that of the application at line {}; give "
                                    "each a different name",
                                    application.name, first->second));
  const yaml::Node* models = fields.find("models");
  for (size_t i = 0; i < application.models.size(); ++i) {
    const std::string& model = application.models[i];
    const auto [owner, is_free] = taken.models.emplace(model, application.name);
    if (is_free) continue;
    return invalid(
        fmt::format("{}:{}: \"models\" has \"{}\", which belongs to the application \"{}\"; "
                    "name it in one of them",
                    fields.file(), models->children[i].line, shortened(model, 60), owner->second),
        "models");
  }
  return {};
}

}  // namespace

Result<std::vector<Application>> read_applications(const std::string& path) {
  VALORA_TRY(text, read_file(path, kLimits.max_bytes));
  VALORA_TRY(root, yaml::parse(text, path, kLimits));
  VALORA_TRY(fields, yaml::Fields::open(path, root, "", {"applications"}));
  const yaml::Node* list = fields.find("applications");
  if (!list) return fields.error("applications", "is missing");
  if (list->kind != yaml::Node::Kind::kList || list->children.empty())
    return fields.error("applications", "must be a list of at least one application");
  std::vector<Application> applications;
  Taken taken;
  for (const yaml::Node& node : list->children) {
    VALORA_TRY(entry, yaml::Fields::open(path, node, "",
                                         {"name", "models", "ttft", "tpot", "e2e", "priority",
                                          "share", "max_waiting", "rate"}));
    VALORA_TRY(application, read_application(entry));
    VALORA_CHECK(check_distinct(entry, application, taken));
    applications.push_back(std::move(application));
  }
  return applications;
}

}  // namespace valora::server
