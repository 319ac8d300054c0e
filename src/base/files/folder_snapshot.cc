#include "base/files/folder_snapshot.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace valora {
namespace {

constexpr size_t kMostContentBytes = size_t{16} << 20;

int64_t ns_of(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

Error changed_while_read(const std::string& path) {
  return {ErrorCode::kConflict,
          path + " was changed while it was read; try again once it is written", path};
}

std::optional<FolderSnapshot::File> FolderSnapshot::look(const InputFolder& folder,
                                                         const std::string& name,
                                                         bool with_content) {
  const auto input = folder.file(name);
  struct stat info{};
  if (!input.ok() || ::fstat(input->descriptor(), &info) != 0) return std::nullopt;
  File file{info.st_dev,         info.st_ino,         info.st_size,
            ns_of(info.st_mtim), ns_of(info.st_ctim), std::nullopt};
  if (!with_content || input->size() > kMostContentBytes) return file;
  if (const auto text = input->text(); text.ok()) file.content = digest_of(*text);
  return file;
}

FolderSnapshot FolderSnapshot::take(const InputFolder& folder, std::vector<std::string> names,
                                    bool with_contents) {
  FolderSnapshot snapshot;
  snapshot.with_contents_ = with_contents;
  for (const std::string& name : names)
    snapshot.files_.push_back(look(folder, name, with_contents && name.ends_with(".json")));
  snapshot.names_ = std::move(names);
  return snapshot;
}

Status FolderSnapshot::check(const InputFolder& folder) const {
  const FolderSnapshot now = take(folder, names_, with_contents_);
  for (size_t i = 0; i < files_.size(); ++i)
    if (files_[i] != now.files_[i]) return changed_while_read(folder.path_of(names_[i]));
  return {};
}

bool FolderSnapshot::at_rest_for(std::chrono::nanoseconds time) const {
  timespec clock{};
  ::clock_gettime(CLOCK_REALTIME, &clock);
  const int64_t now = ns_of(clock);
  // A time in the future, by another machine's clock, tells nothing.
  return std::ranges::all_of(files_, [&](const std::optional<File>& file) {
    return !file || (file->changed_ns <= now && now - file->changed_ns >= time.count());
  });
}

}  // namespace valora
