#include "cli/rows/run_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "cli/rows/csv.h"
#include "generator/data/media_files.h"
#include "server/batches/row_journal.h"

namespace valora::cli {
namespace {

namespace fs = std::filesystem;
using generator::Medium;

constexpr size_t kMostTableBytes = size_t{256} << 20;

bool has_ending(const std::string& path, const char* ending) {
  return fs::path(path).extension() == ending;
}

Status add_files(const std::vector<std::string>& files, RunInputs& out) {
  for (const std::string& file : files) {
    if (generator::is_medium(file, Medium::Kind::kImage))
      out.media.push_back({.name = file, .image = file});
    else if (generator::is_medium(file, Medium::Kind::kVideo))
      out.media.push_back({.name = file, .video = file});
    else
      ++out.left_out;
  }
  return {};
}

Status add_input(const std::string& input, RunInputs& out) {
  std::error_code gone;
  if (fs::is_directory(input, gone)) {
    VALORA_TRY(files, files_below(input));
    return add_files(files, out);
  }
  if (!is_pattern(input) || fs::exists(input, gone)) {
    if (!fs::is_regular_file(input, gone))
      return not_found("--input " + input + " does not exist", "input");
    return add_files({input}, out);
  }
  VALORA_TRY(files, matching_files(input));
  return add_files(files, out);
}

// The columns of a table that are read.
struct Columns {
  std::optional<size_t> name, image, video, prompt;
};

Result<Columns> columns_of(const std::vector<std::string>& head) {
  Columns columns;
  for (size_t i = 0; i < head.size(); ++i) {
    if (head[i] == "name") columns.name = i;
    if (head[i] == "image") columns.image = i;
    if (head[i] == "video") columns.video = i;
    if (head[i] == "prompt") columns.prompt = i;
  }
  if (!columns.image && !columns.video && !columns.prompt)
    return invalid("the first line must name the columns, and one of image, video and prompt");
  return columns;
}

std::string path_in(const fs::path& folder, const std::string& path) {
  return path.empty() ? path : (folder / path).string();
}

Result<MediaRow> table_row(const Columns& columns, const std::vector<std::string>& fields,
                           const fs::path& folder, size_t number) {
  const auto field = [&](const std::optional<size_t>& column) {
    return column ? fields[*column] : std::string();
  };
  const std::string image = field(columns.image), video = field(columns.video);
  MediaRow row{field(columns.name), path_in(folder, image), path_in(folder, video),
               field(columns.prompt)};
  if (row.name.empty()) row.name = !image.empty() ? image : video;
  if (row.name.empty()) row.name = fmt::format("row {}", number);
  if (image.empty() && video.empty() && row.prompt.empty())
    return invalid("the row has neither image, video nor prompt");
  return row;
}

Result<RunInputs> read_table(const std::string& path) {
  VALORA_TRY(text, read_file(path, kMostTableBytes));
  if (!text.ends_with('\n')) text += '\n';
  RunInputs out;
  std::optional<Columns> columns;
  size_t width = 0, line = 1;
  std::string_view rest = text;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);  // as spreadsheets write it
  const auto at_line = [&](const Error& error) {
    return invalid(fmt::format("{}:{}: {}", path, line, error.message), "input");
  };
  while (!rest.empty()) {
    const size_t end = server::csv_row_end(rest);
    if (end == rest.npos) return at_line(invalid("a quote is not closed"));
    std::string_view row = rest.substr(0, end - 1);
    const auto breaks = std::ranges::count(row, '\n') + 1;
    rest.remove_prefix(end);
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (!row.empty()) {
      const auto fields = csv_fields(row);
      if (!fields.ok()) return at_line(fields.error());
      if (!columns) {
        auto found = columns_of(*fields);
        if (!found.ok()) return at_line(found.error());
        columns = *found;
        width = fields->size();
      } else if (fields->size() != width) {
        return at_line(invalid(
            fmt::format("the row has {} fields, and the first line {}", fields->size(), width)));
      } else {
        auto media =
            table_row(*columns, *fields, fs::path(path).parent_path(), out.media.size() + 1);
        if (!media.ok()) return at_line(media.error());
        out.media.push_back(std::move(*media));
      }
    }
    line += static_cast<size_t>(breaks);
  }
  return out;
}

Result<RunInputs> read_lines(const std::string& path) {
  VALORA_TRY(file, InputFile::open(path));
  VALORA_TRY(input, server::read_batch_input(file, {}, std::numeric_limits<size_t>::max(),
                                             [](const std::string&) { return false; }));
  if (!input.faults.empty()) {
    const server::LineFault& fault = input.faults.front();
    return invalid(fault.line == 0 ? fmt::format("{}: {}", path, fault.message)
                                   : fmt::format("{}:{}: {}", path, fault.line, fault.message),
                   "input");
  }
  RunInputs out;
  out.lines.emplace(std::move(file));
  out.places = std::move(input.rows);
  return out;
}

Status check_names(const RunInputs& inputs) {
  std::unordered_set<std::string_view> names;
  for (const MediaRow& row : inputs.media)
    if (!names.insert(row.name).second)
      return invalid(fmt::format("--input has the name {} twice", row.name), "input");
  return {};
}

Result<RunInputs> read_any(const std::vector<std::string>& inputs) {
  RunInputs out;
  for (const std::string& input : inputs) {
    const bool table = has_ending(input, ".csv"), lines = has_ending(input, ".jsonl");
    if ((table || lines) && !is_pattern(input)) {
      if (inputs.size() > 1)
        return invalid("--input " + input + " must be the only input: it is a list of rows",
                       "input");
      return table ? read_table(input) : read_lines(input);
    }
    VALORA_CHECK(add_input(input, out));
  }
  std::ranges::sort(out.media, {}, &MediaRow::name);
  const auto same = std::ranges::unique(out.media, {}, &MediaRow::name);
  out.media.erase(same.begin(), same.end());
  return out;
}

}  // namespace

Result<RunInputs> read_run_inputs(const std::vector<std::string>& inputs) {
  VALORA_TRY(out, read_any(inputs));
  VALORA_CHECK(check_names(out));
  out.total = out.size();
  if (out.total == 0)
    return not_found("--input " + inputs.front() + " has no pictures, videos or rows", "input");
  return out;
}

Status drop_done(RunInputs& inputs, const std::unordered_set<std::string>& done) {
  std::erase_if(inputs.media, [&](const MediaRow& row) { return done.contains(row.name); });
  if (!inputs.is_openai() || done.empty()) return {};
  VALORA_TRY(input,
             server::read_batch_input(*inputs.lines, {}, std::numeric_limits<size_t>::max(),
                                      [&](const std::string& id) { return done.contains(id); }));
  inputs.places = std::move(input.rows);
  return {};
}

}  // namespace valora::cli
