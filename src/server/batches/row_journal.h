// A file of rows that only grows, and in which each row is whole, whatever ends the process
// (docs/batches.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::server {

// The calls that change a journal's file. All return 0 or an errno.
class JournalFile {
 public:
  virtual ~JournalFile() = default;
  virtual int append(std::string_view bytes) = 0;  // may write a part of them before it fails
  virtual int sync() = 0;
  virtual int truncate(uint64_t size) = 0;
};

// The bytes of the first row of a text, with its end; npos if the row has no end.
using RowEnd = size_t (*)(std::string_view text);
size_t line_end(std::string_view text);
// Rows end at line breaks outside of quotes.
size_t csv_row_end(std::string_view text);

class RowJournal {
 public:
  // Reads one row without its line break; `number` counts from 1.
  using Reader = std::function<Status(std::string_view row, size_t number)>;

  // Creates the file or opens it for this process alone, and reads its rows. What follows the last
  // whole row is cut off, and so is a last row that `read` refuses: a write was cut short there.
  // Errors: kConflict if another process writes the file; those of `read` for any other row;
  // kUnavailable if the file cannot be opened, read or cut.
  static Result<RowJournal> open(const std::string& path, const Reader& read,
                                 RowEnd end = line_end);
  // For tests: over a file of `size` bytes.
  RowJournal(std::string path, std::unique_ptr<JournalFile> file, uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size) {}

  // Appends whole rows, with their line breaks, and returns once they are on the disk. After an
  // error (kUnavailable) none of them is in the file, and they can be appended again.
  Status append(std::string_view rows);
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  Status cut_to(uint64_t size);

  std::string path_;
  std::unique_ptr<JournalFile> file_;
  uint64_t size_;      // of the whole rows
  bool torn_ = false;  // an append failed, and what it wrote could not be cut off
};

}  // namespace valora::server
