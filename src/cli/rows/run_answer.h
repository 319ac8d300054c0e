// One answer of a run, as its output shows it.
#pragma once

#include <optional>
#include <string>

#include "base/json/json.h"
#include "cli/rows/run_output.h"
#include "server/http/http.h"

namespace valora::cli {

struct RunAnswer {
  std::string name;
  std::string text;           // the answer; of labels, the label
  OrderedJson value;          // labels and boxes: as the server gives them; else null
  std::string finish_reason;  // empty: unknown
  std::string error;          // empty: none
  int status = 200;
};

RunAnswer read_answer(const std::string& name, const server::HttpResponse& response,
                      AnswerKind kind);

// {"name", "answer", "label" or "labels" or "boxes", "finish_reason"}, or {"name", "error":
// {"status", "message"}}.
OrderedJson answer_json(const RunAnswer& answer, AnswerKind kind);
std::vector<std::string> csv_head(AnswerKind kind);
std::vector<std::string> csv_of(const RunAnswer& answer, AnswerKind kind);

}  // namespace valora::cli
