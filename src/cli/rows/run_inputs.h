// The rows that `valora run` asks: files, lines of OpenAI's batch form, or rows of a CSV table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/files/file.h"
#include "base/result.h"
#include "server/batches/batch_lines.h"

namespace valora::cli {

// A row that asks about a picture, a video or with a text alone.
struct MediaRow {
  std::string name;
  std::string image, video;  // paths; empty: none
  std::string prompt;        // empty: that of the command
};

struct RunInputs {
  std::vector<MediaRow> media;
  // Instead: lines of the OpenAI batch form, and their file.
  std::optional<InputFile> lines;
  std::vector<server::LinePlace> places;

  size_t total = 0;     // rows, with those that are done
  size_t left_out = 0;  // files that are neither pictures nor videos
  bool is_openai() const { return lines.has_value(); }
  size_t size() const { return is_openai() ? places.size() : media.size(); }
};

// Each of `inputs` is a pattern, a folder or a picture or video; or it is alone and a .jsonl or
// .csv file (docs/batches.md). Errors name the input, and the line within it.
Result<RunInputs> read_run_inputs(const std::vector<std::string>& inputs);
// Leaves those out that are done.
Status drop_done(RunInputs& inputs, const std::unordered_set<std::string>& done);

inline bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != text.npos; }

// The files that a pattern matches, in the order of their names: * and ? within a name, [abc], and
// ** for any number of folders. Names that begin with a dot must be matched by a dot. kNotFound if
// there are none.
Result<std::vector<std::string>> matching_files(const std::string& pattern);
// All files below a folder but those of hidden names, in the order of their names.
Result<std::vector<std::string>> files_below(const std::string& folder);

}  // namespace valora::cli
