// Reads the lines of a batch's input, in OpenAI's form: {"custom_id", "method": "POST", "url",
// "body"}.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/files/file.h"
#include "base/result.h"

namespace valora::server {

// The endpoints that rows may ask.
std::span<const std::string_view> batch_endpoints();
bool is_batch_endpoint(std::string_view url);

struct BatchLine {
  std::string custom_id;
  std::string url;
  std::string body;  // JSON, as written in the line
};

// What is wrong with a line, or, if that is 0, with the whole file.
struct LineFault {
  std::string code;  // OpenAI's, such as "invalid_json_line"
  std::string message;
  std::string param;  // the line's key; may be empty
  size_t line = 0;
};

// endpoint: that of the batch, which every row asks; empty: each row names its own. The fault has
// no line.
std::variant<BatchLine, LineFault> parse_batch_line(std::string_view text,
                                                    std::string_view endpoint);

// Calls `take` with each line that is not empty, without its line break, and its place; `number`
// counts all lines from 1. Errors: those of `take`; kPayloadTooLarge for a line longer than
// max_bytes; those of the file.
struct LinePlace {
  uint64_t begin = 0;
  uint32_t bytes = 0;
};
Status each_line(const InputFile& file, size_t max_bytes,
                 const std::function<Status(std::string_view, LinePlace, size_t number)>& take);
Result<std::string> line_at(const InputFile& file, LinePlace place);

inline constexpr size_t kMostBatchLineBytes = size_t{64} << 20;
inline constexpr size_t kMostLineFaults = 100;
inline constexpr size_t kMostCustomIdBytes = 512;

// The rows of an input.
struct BatchInput {
  size_t total = 0;
  std::vector<LinePlace> rows;    // without those that are done
  std::vector<LineFault> faults;  // the first kMostLineFaults; none: the input is valid
};

// is_done: whether a row has its answer. Errors: those of reading the file.
Result<BatchInput> read_batch_input(const InputFile& file, std::string_view endpoint,
                                    size_t most_rows,
                                    const std::function<bool(const std::string&)>& is_done);

}  // namespace valora::server
