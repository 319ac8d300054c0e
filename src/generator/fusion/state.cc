#include "generator/fusion/state.h"

#include "base/files/file.h"
#include "base/files/write_file.h"

namespace valora::generator {
namespace {

// Steps are stored in the report's format.
Json to_json(const std::map<std::string, FusionStep>& attempts) {
  FusionReport report;
  Json keys = Json::array();
  for (const auto& [lineage, step] : attempts) {
    keys.push_back(lineage);
    report.steps.push_back(step);
  }
  return {{"lineages", keys}, {"steps", to_json(report)["steps"]}};
}

Result<std::map<std::string, FusionStep>> attempts_from(const Json& json, const std::string& path) {
  Json whole = to_json(FusionReport());
  whole["steps"] = json.at("steps");
  VALORA_TRY(report, report_from_json(whole, path));
  const auto lineages = json.at("lineages").get<std::vector<std::string>>();
  if (lineages.size() != report.steps.size())
    return unprocessable(path + ": \"lineages\" and \"steps\" differ in length", path);
  std::map<std::string, FusionStep> attempts;
  for (size_t i = 0; i < lineages.size(); ++i) attempts[lineages[i]] = std::move(report.steps[i]);
  return attempts;
}

}  // namespace

Status write_state(const std::string& path, const FusionState& state) {
  const Json json{{"identity", state.identity},
                  {"base", state.base},
                  {"attempts", to_json(state.attempts)},
                  {"peak_bytes", state.peak_bytes}};
  return write_file(path, json.dump(1) + "\n");
}

Result<FusionState> read_state(const std::string& path, const std::string& identity) {
  FusionState state{identity};
  if (!file_exists(path)) return state;
  VALORA_TRY(json, read_json_file(path));
  try {
    if (json.at("identity") != identity)
      return Error{ErrorCode::kConflict,
                   path +
                       " belongs to another model or training: choose another --output or pass "
                       "--restart",
                   "output"};
    state.base = json.at("base").get<std::map<std::string, double>>();
    VALORA_TRY(attempts, attempts_from(json.at("attempts"), path));
    state.attempts = std::move(attempts);
    state.peak_bytes = json.value("peak_bytes", size_t{0});
  } catch (const Json::exception& e) {
    return unprocessable(path + " is not a fusion state: " + e.what(), path);
  }
  return state;
}

}  // namespace valora::generator
