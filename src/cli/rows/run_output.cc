#include "cli/rows/run_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files/file.h"
#include "base/files/write_file.h"
#include "base/json/parse_ordered.h"
#include "cli/rows/csv.h"
#include "cli/rows/run_answer.h"
#include "generator/data/media_files.h"
#include "server/batches/answer_rows.h"
#include "server/batches/batch_lines.h"
#include "server/openai/json_text.h"

namespace valora::cli {
namespace {

namespace fs = std::filesystem;
using server::RowJournal;

std::string settings_path(const std::string& output) { return output + ".run"; }

// Where rows are kept: the output itself, unless that is one JSON object.
std::string rows_path(const RunOutput::Options& options) {
  return options.format == OutputFormat::kCoco ? options.path + ".rows" : options.path;
}

Error other_run(const std::string& path, const std::string& why) {
  return {ErrorCode::kConflict,
          fmt::format("{} {}; give another --output, or --fresh to start it over", path, why),
          "output"};
}

// Whether the output was begun with these settings; else the first one that differs.
Status compare_settings(const std::string& path, const Json& before, const Json& now) {
  for (const auto& [key, value] : now.items())
    if (before.value(key, Json()) != value)
      return other_run(path, fmt::format("was written with another \"{}\": {}", key,
                                         before.value(key, Json()).dump()));
  return {};
}

Status check_settings(const RunOutput::Options& options) {
  const std::string path = settings_path(options.path);
  if (file_exists(path)) {
    VALORA_TRY(before, read_json_file(path));
    if (!before.is_object()) return other_run(path, "is not that of a run");
    return compare_settings(options.path, before, options.settings);
  }
  std::error_code gone;
  if (fs::exists(options.path, gone) && fs::file_size(options.path, gone) > 0)
    return other_run(options.path, "exists, and valora run did not begin it");
  return write_file(path, options.settings.dump(1) + "\n");
}

// Whether a row of OpenAI's form has an answer.
bool is_answered(const OrderedJson& row) {
  const auto response = row.find("response");
  return response != row.end() && response->is_object() && response->value("status_code", 0) == 200;
}

Status remove_earlier(const RunOutput::Options& options) {
  std::error_code error;
  for (const std::string& path : {rows_path(options), options.path, settings_path(options.path)}) {
    fs::remove(path, error);
    if (error) return invalid(path + " cannot be removed: " + error.message(), "output");
  }
  return {};
}

}  // namespace

Result<OutputFormat> output_format(const std::string& path, bool openai_rows, AnswerKind answers) {
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".jsonl") return openai_rows ? OutputFormat::kOpenAi : OutputFormat::kJsonl;
  if (ending == ".csv") return OutputFormat::kCsv;
  if (ending != ".json")
    return invalid("--output " + path + " must end in .jsonl, .csv, or .json for a COCO file",
                   "output");
  if (openai_rows || answers != AnswerKind::kBoxes)
    return invalid(
        "--output " + path +
            ": a COCO file has boxes of pictures; other answers are written as .jsonl or .csv",
        "output");
  return OutputFormat::kCoco;
}

Result<RunOutput> RunOutput::open(Options options) {
  if (options.fresh) VALORA_CHECK(remove_earlier(options));
  VALORA_CHECK(check_settings(options));
  const std::string path = rows_path(options);
  const bool csv = options.format == OutputFormat::kCsv;
  RunOutput output(std::move(options), RowJournal(path, nullptr, 0));
  VALORA_TRY(journal, RowJournal::open(
                          path,
                          [&output](std::string_view row, size_t number) {
                            return output.read_row(row, number);
                          },
                          csv ? server::csv_row_end : server::line_end));
  output.journal_ = std::move(journal);
  if (csv && output.journal_.size() == 0)
    VALORA_CHECK(output.journal_.append(csv_row(csv_head(output.options_.answers))));
  return output;
}

// The next row of an output that is continued.
Status RunOutput::read_row(std::string_view row, size_t number) {
  const auto refused = [&](const std::string& why) {
    return other_run(options_.path,
                     fmt::format("has a row {} that is none of a run: {}", number, why));
  };
  std::string name;
  bool failed = false;
  if (options_.format == OutputFormat::kCsv) {
    const auto fields = csv_fields(row);
    if (!fields.ok()) return refused(fields.error().message);
    const std::vector<std::string> head = csv_head(options_.answers);
    if (fields->size() != head.size()) return refused("it has another number of fields");
    if (number == 1) return *fields == head ? Status() : refused("the first one must be the head");
    name = fields->front();
    failed = !fields->back().empty();
  } else {
    const OrderedJson json = parse_ordered(row);
    const char* key = options_.format == OutputFormat::kOpenAi ? "custom_id" : "name";
    if (json.is_discarded() || !json.is_object() || !json.contains(key) || !json[key].is_string())
      return refused(fmt::format("it is not a JSON object with \"{}\"", key));
    name = json[key].get<std::string>();
    failed = options_.format == OutputFormat::kOpenAi ? !is_answered(json) : json.contains("error");
  }
  if (!done_.insert(name).second) return refused(fmt::format("{} has two rows", name));
  failed_ += failed ? 1 : 0;
  return {};
}

std::string RunOutput::row_of(const server::AnsweredRow& row, const PicturePath& picture) const {
  if (options_.format == OutputFormat::kOpenAi)
    return server::answer_row(row.name, row.request_id, row.response);
  RunAnswer answer = read_answer(row.name, row.response, options_.answers);
  if (options_.format == OutputFormat::kCsv) return csv_row(csv_of(answer, options_.answers));
  OrderedJson size;
  if (options_.format == OutputFormat::kCoco && answer.error.empty()) {
    const auto found = generator::picture_size(picture(row.name));
    if (found.ok())
      size = {found->width, found->height};
    else
      answer.error = found.error().message;  // the picture was changed meanwhile
  }
  OrderedJson json = answer_json(answer, options_.answers);
  if (!size.is_null()) json["size"] = std::move(size);
  return server::to_text(json) + "\n";
}

Status RunOutput::write(const std::vector<server::AnsweredRow>& rows, const PicturePath& picture) {
  std::string text;
  for (const server::AnsweredRow& row : rows) text += row_of(row, picture);
  VALORA_CHECK(journal_.append(text));
  for (const server::AnsweredRow& row : rows) {
    done_.insert(row.name);
    failed_ += row.response.status != 200 ? 1 : 0;
  }
  return {};
}

Status RunOutput::finish() {
  if (options_.format != OutputFormat::kCoco) return {};
  VALORA_TRY(file, InputFile::open(journal_.path()));
  std::vector<OrderedJson> rows;
  VALORA_CHECK(server::each_line(file, SIZE_MAX,
                                 [&](std::string_view line, server::LinePlace, size_t) -> Status {
                                   rows.push_back(parse_ordered(line));
                                   return {};
                                 }));
  VALORA_TRY(coco, coco_of(std::move(rows), options_.coco));
  return write_file(options_.path, server::to_text(coco) + "\n");
}

}  // namespace valora::cli
