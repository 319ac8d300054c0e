// Input folders. A folder may be confined to a root, which no link may leave.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/result.h"

namespace valora {

// The path below `root` of the file or folder that `path` leads to, all links resolved; empty for
// the root itself. Absent if the path does not exist or is outside the root.
std::optional<std::string> path_below(const std::string& root, const std::string& path);

// open(2) of such a path, component by component and without following a link: a folder that
// became a link after the path was resolved leads nowhere. -1 and errno on error.
int open_below(const std::string& root, const std::string& path, int flags);

struct FolderPath {
  FolderPath(std::string path, std::string root = {})  // NOLINT: implicit by design
      : path(std::move(path)), root(std::move(root)) {}
  std::string path;
  // The folder that links of `path` and in it must not lead out of; empty: they may lead anywhere.
  // Links in the root's own path may as well.
  std::string root;
  bool operator==(const FolderPath&) const = default;
};

// A folder held open: its files stay those of this folder when the path comes to lead elsewhere.
class InputFolder {
 public:
  // kNotFound if there is no such folder, or none below the root.
  static Result<InputFolder> open(const FolderPath& where);
  InputFolder(InputFolder&& other) noexcept;
  InputFolder& operator=(InputFolder&&) = delete;
  ~InputFolder();

  const std::string& path() const { return where_.path; }
  std::string path_of(const std::string& name) const { return where_.path + "/" + name; }
  // True if the folder has an entry of this name, dangling links included.
  bool has(const std::string& name) const;
  // A file right in the folder. Errors: those of InputFile::open(); kNotFound also for a link that
  // leads out of the root.
  Result<InputFile> file(const std::string& name, size_t max_bytes = SIZE_MAX) const;
  // The whole file.
  Result<std::string> text(const std::string& name, size_t max_bytes) const;

 private:
  InputFolder(FolderPath where, int fd) : where_(std::move(where)), fd_(fd) {}
  int open_link(const std::string& name) const;

  FolderPath where_;
  int fd_;
};

// A JSON file right in the folder. Errors: those of text(), and of parse_json().
Result<Json> read_json(const InputFolder& folder, const std::string& name, JsonLimits limits = {});
// The same; null if the folder has no such file.
Result<Json> read_optional_json(const InputFolder& folder, const std::string& name);

}  // namespace valora
