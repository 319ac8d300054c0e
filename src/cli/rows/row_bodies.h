// The requests of a run: bodies of chats about files.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/rows/run_inputs.h"
#include "cli/rows/run_output.h"
#include "server/batches/row_run.h"

namespace valora::cli {

// What all rows of a run ask.
struct RowQuestion {
  std::string model;  // a name of the server; empty: the base model
  std::string prompt;
  AnswerKind answers = AnswerKind::kText;
  std::optional<int> max_tokens;
  double temperature = 0;
  std::optional<int64_t> seed;
};

server::Row media_row(const MediaRow& row, const RowQuestion& question);
// A line of the OpenAI batch form. A body that names no model asks that of `question`.
Result<server::Row> openai_row(const std::string& line, const RowQuestion& question);

// file:///…, with what is not plain in it escaped.
std::string file_url_of(const std::string& path);

}  // namespace valora::cli
