// The file that `valora run` writes. It is its own record of what is done: rows are appended, and a
// later run goes on behind them (docs/batches.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "server/batches/row_journal.h"
#include "server/batches/row_run.h"

namespace valora::cli {

enum class AnswerKind { kText, kLabels, kBoxes };
enum class OutputFormat { kJsonl, kOpenAi, kCsv, kCoco };

// By the path's ending; kOpenAi: a .jsonl file for rows of the OpenAI batch form. kInvalidArgument
// for others, and for .json (COCO) unless the answers are boxes of files.
Result<OutputFormat> output_format(const std::string& path, bool openai_rows, AnswerKind answers);

// What a COCO file says beside the boxes.
struct CocoNames {
  std::vector<std::string> labels;  // of the task, in its order
  std::string unnamed;              // the category of boxes without a label
};

class RunOutput {
 public:
  struct Options {
    std::string path;
    OutputFormat format = OutputFormat::kJsonl;
    AnswerKind answers = AnswerKind::kText;
    Json settings;  // what the answers depend on
    bool fresh = false;
    CocoNames coco;
  };

  // Begins or continues an output. Errors: kConflict if the file is that of another command, or of
  // one with other settings, or is being written; kUnavailable if it cannot be written.
  static Result<RunOutput> open(Options options);

  // The rows that it has.
  const std::unordered_set<std::string>& done() const { return done_; }
  size_t failed() const { return failed_; }  // of these, the ones with an error

  // The size of a row's picture; a COCO file needs it.
  using PicturePath = std::function<std::string(const std::string& name)>;
  // Appends rows and returns once they are on the disk.
  Status write(const std::vector<server::AnsweredRow>& rows, const PicturePath& picture);
  // Call when all rows are written: writes the COCO file.
  Status finish();

 private:
  RunOutput(Options options, server::RowJournal journal)
      : options_(std::move(options)), journal_(std::move(journal)) {}

  Status read_row(std::string_view row, size_t number);
  std::string row_of(const server::AnsweredRow& row, const PicturePath& picture) const;

  Options options_;
  server::RowJournal journal_;
  std::unordered_set<std::string> done_;
  size_t failed_ = 0;
};

// A COCO file of boxes: {"images", "annotations", "categories"},
// from rows {"name", "boxes": [{"label", "box": [x0, y0, x1, y1]}], "size": [width, height]}, or
// {"name", "error"}. Boxes become [x, y, width, height] in pixels of the picture. Images are in the
// order of their names; those with errors are in "errors" instead.
Result<OrderedJson> coco_of(std::vector<OrderedJson> rows, const CocoNames& names);

}  // namespace valora::cli
