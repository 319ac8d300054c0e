#include "server/batches/row_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace valora::server {
namespace {

constexpr size_t kJournalReadBytes = size_t{1} << 20;

Error journal_error(const std::string& path, std::string_view what, int number) {
  return {ErrorCode::kUnavailable,
          fmt::format("{} {}: {}{}", path, what, std::strerror(number),
                      number == ENOSPC ? "; make room on the disk" : ""),
          path};
}

class OpenJournalFile final : public JournalFile {
 public:
  explicit OpenJournalFile(int file) : file_(file) {}
  ~OpenJournalFile() override { ::close(file_); }
  OpenJournalFile(const OpenJournalFile&) = delete;
  OpenJournalFile& operator=(const OpenJournalFile&) = delete;

  int append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return 0;
  }
  int sync() override { return ::fdatasync(file_) == 0 ? 0 : errno; }
  int truncate(uint64_t size) override {
    return ::ftruncate(file_, static_cast<off_t>(size)) == 0 ? 0 : errno;
  }

 private:
  const int file_;
};

// The bytes of the rows that stay.
Result<uint64_t> read_rows(const std::string& path, int file, const RowJournal::Reader& read,
                           RowEnd row_end) {
  std::string held;  // what follows the last row that was read
  uint64_t whole = 0;
  size_t number = 0;
  Status refused;
  for (uint64_t at = 0;;) {
    const size_t had = held.size();
    held.resize(had + kJournalReadBytes);
    const ssize_t got = ::pread(file, held.data() + had, kJournalReadBytes, static_cast<off_t>(at));
    if (got < 0) return journal_error(path, "cannot be read", errno);
    held.resize(had + static_cast<size_t>(got));
    if (got == 0) return whole;  // a refused row was the last one
    at += static_cast<uint64_t>(got);
    size_t used = 0;
    for (size_t end; (end = row_end(std::string_view(held).substr(used))) != held.npos;
         used += end) {
      if (!refused.ok()) return refused.error();
      std::string_view row = std::string_view(held).substr(used, end - 1);
      if (row.ends_with('\r')) row.remove_suffix(1);
      refused = read(row, ++number);
      if (refused.ok()) whole += end;
    }
    held.erase(0, used);
  }
}

}  // namespace

size_t line_end(std::string_view text) {
  const size_t end = text.find('\n');
  return end == text.npos ? end : end + 1;
}

size_t csv_row_end(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) return i + 1;
  }
  return text.npos;
}

Result<RowJournal> RowJournal::open(const std::string& path, const Reader& read, RowEnd end) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return journal_error(path, "cannot be opened", errno);
  RowJournal journal(path, std::make_unique<OpenJournalFile>(file), 0);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorCode::kConflict, path + " is being written by another process", path};
  VALORA_TRY(whole, read_rows(path, file, read, end));
  journal.size_ = whole;
  struct stat found{};
  if (::fstat(file, &found) != 0) return journal_error(path, "cannot be read", errno);
  if (static_cast<uint64_t>(found.st_size) != whole) VALORA_CHECK(journal.cut_to(whole));
  return journal;
}

Status RowJournal::cut_to(uint64_t size) {
  torn_ = true;
  if (const int fault = file_->truncate(size)) return journal_error(path_, "cannot be cut", fault);
  if (const int fault = file_->sync()) return journal_error(path_, "cannot be written", fault);
  torn_ = false;
  size_ = size;
  return {};
}

Status RowJournal::append(std::string_view rows) {
  if (rows.empty()) return {};
  if (torn_) VALORA_CHECK(cut_to(size_));
  int fault = file_->append(rows);
  if (fault == 0) fault = file_->sync();
  if (fault == 0) {
    size_ += rows.size();
    return {};
  }
  (void)cut_to(size_).ok();  // tried again before the next append
  return journal_error(path_, "cannot be written", fault);
}

}  // namespace valora::server
