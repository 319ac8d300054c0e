#include "generator/fusion/state.h"

#include "base/file.h"
#include "base/write_file.h"

namespace valora::generator {

Status write_state(const std::string& path, const FusionState& state) {
  Json adapters = Json::array();
  for (const OpenAdapter& a : state.adapters) adapters.push_back({{"name", a.name}, {"kept", a.kept}, {"rank", a.rank}, {"tasks", a.tasks}});
  FusionReport alone_report;
  alone_report.steps = state.alone;
  const Json json{{"identity", state.identity}, {"measured", state.measured}, {"order", state.order}, {"next", state.next},
                  {"attempt", state.attempt}, {"adapters", adapters}, {"alone", to_json(alone_report)["steps"]}, {"report", to_json(state.report)}, {"done", state.done}};
  return write_file(path, json.dump(1) + "\n");
}

Result<std::optional<FusionState>> read_state(const std::string& path, const std::string& identity) {
  if (!file_exists(path)) return std::optional<FusionState>();
  VALORA_TRY(json, read_json_file(path));
  FusionState state;
  try {
    state.identity = json.at("identity");
    if (state.identity != identity)
      return Error{ErrorCode::kConflict, path + " is of another run: other options, tasks, data or model. Name another --output, or begin anew with --restart", "output"};
    state.measured = json.at("measured");
    state.order = json.at("order").get<std::vector<std::string>>();
    state.next = json.at("next");
    state.attempt = json.at("attempt");
    for (const Json& a : json.at("adapters")) state.adapters.push_back({a.at("name"), a.at("kept"), a.at("rank"), a.at("tasks")});
    state.done = json.at("done");
    VALORA_TRY(report, report_from_json(json.at("report"), path));
    state.report = std::move(report);
    Json alone = to_json(FusionReport());
    alone["steps"] = json.at("alone");
    VALORA_TRY(alone_report, report_from_json(alone, path));
    state.alone = std::move(alone_report.steps);
  } catch (const Json::exception& e) {
    return unprocessable(path + " is no state of a fusion: " + e.what(), path);
  }
  return std::optional(std::move(state));
}

}  // namespace valora::generator
