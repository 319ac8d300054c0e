#include "scheduler/costs/cost_file.h"

#include <fmt/format.h>

#include <cmath>

#include "base/digest.h"
#include "base/files/cache_folder.h"
#include "base/files/file.h"
#include "base/files/write_file.h"
#include "base/json/json.h"

namespace valora::scheduler {
namespace {

constexpr int kVersion = 1;
constexpr size_t kMostBytes = 1 << 16;

Error in_file(const std::string& what, const Error& error) {
  return {ErrorCode::kInvalidArgument, what + ": " + error.message, error.param};
}

Result<double> amount(const Json& object, std::string_view key) {
  VALORA_TRY(value, required_field<double>(object, key));
  if (!(value >= 0) || !std::isfinite(value))
    return invalid(fmt::format("\"{}\" must be a number of at least 0", key), std::string(key));
  return value;
}

Result<CostFile> from_json(const Json& json) {
  VALORA_TRY(version, required_field<int32_t>(json, "version"));
  if (version != kVersion) return invalid(fmt::format("version {} is not known", version));
  CostFile file;
  VALORA_TRY(machine, required_field<std::string>(json, "machine"));
  VALORA_TRY(model, required_field<std::string>(json, "model"));
  file.machine = machine;
  file.model = model;
  for (const char* key : {"costs", "error"})
    if (!json.contains(key) || !json[key].is_object())
      return invalid(fmt::format("\"{}\" must be an object", key), key);
  for (const StepCostField& field : step_cost_fields()) {
    VALORA_TRY(value, amount(json["costs"], field.name));
    file.fitted.costs.*field.value = value;
  }
  VALORA_TRY(free_tokens, amount(json["costs"], "free_tokens"));
  file.fitted.costs.free_tokens = free_tokens;
  VALORA_TRY(median, amount(json["error"], "median"));
  VALORA_TRY(p95, amount(json["error"], "p95"));
  VALORA_TRY(steps, required_field<int32_t>(json["error"], "steps"));
  file.fitted.error_median = median;
  file.fitted.error_p95 = p95;
  file.fitted.steps = steps;
  return file;
}

}  // namespace

Result<CostFile> parse_cost_file(std::string_view text, const std::string& what) {
  VALORA_TRY(json, parse_json(text, what, {.max_bytes = kMostBytes}));
  if (!json.is_object()) return invalid(what + ": a file of step costs is a JSON object");
  auto file = from_json(json);
  if (!file.ok()) return in_file(what, file.error());
  return file;
}

Result<CostFile> read_cost_file(const std::string& path) {
  VALORA_TRY(text, read_file(path, kMostBytes));
  return parse_cost_file(text, path);
}

std::string cost_file_text(const CostFile& file) {
  Json costs = Json::object();
  for (const StepCostField& field : step_cost_fields())
    costs[std::string(field.name)] = file.fitted.costs.*field.value;
  costs["free_tokens"] = file.fitted.costs.free_tokens;
  const Json json{{"version", kVersion},
                  {"machine", file.machine},
                  {"model", file.model},
                  {"costs", costs},
                  {"error",
                   {{"median", file.fitted.error_median},
                    {"p95", file.fitted.error_p95},
                    {"steps", file.fitted.steps}}}};
  return json.dump(2) + "\n";
}

Status write_cost_file(const std::string& path, const CostFile& file) {
  return write_file_and_folder(path, cost_file_text(file));
}

std::string own_costs_path(const std::string& machine, const std::string& model) {
  const Digest digest =
      DigestBuilder().add(std::string_view(machine)).add(std::string_view(model)).finish();
  return cache_path(fmt::format("costs-{:016x}.json", digest.low));
}

}  // namespace valora::scheduler
