// The file of step costs written by `valora tune --cost`:
//
//   {"version": 1, "machine": "…", "model": "…", "costs": {"step": 0.028, …},
//    "error": {"median": 0.03, "p95": 0.12, "steps": 900}}
//
// machine and model identify the measurement; costs of others are not used.
#pragma once

#include <string>
#include <string_view>

#include "scheduler/costs/fit_costs.h"

namespace valora::scheduler {

struct CostFile {
  std::string machine, model;
  FittedCosts fitted;
};

// kInvalidArgument: not a valid file; the message names the field. what: the source, for messages.
Result<CostFile> parse_cost_file(std::string_view text, const std::string& what);
Result<CostFile> read_cost_file(const std::string& path);
std::string cost_file_text(const CostFile& file);
Status write_cost_file(const std::string& path, const CostFile& file);
// In the user's cache folder; empty if there is none.
std::string own_costs_path(const std::string& machine, const std::string& model);

}  // namespace valora::scheduler
