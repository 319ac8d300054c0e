// Input folders. A folder may be confined to a root that links must not leave.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora {

// The path, relative to `root`, of the file or folder that `path` denotes once all links are
// resolved; empty for the root itself. Absent if `path` does not exist or is outside the root.
std::optional<std::string> path_below(const std::string& root, const std::string& path);

// open(2) for such a path, one component at a time and without following links, so that a folder
// replaced by a link after the path was resolved cannot lead outside. Returns -1 and sets errno on
// error.
int open_below(const std::string& root, const std::string& path, int flags);

struct FolderPath {
  FolderPath(std::string path, std::string root = {})  // NOLINT: implicit by design
      : path(std::move(path)), root(std::move(root)) {}
  std::string path;
  // The folder that neither `path` nor links inside it may leave; empty: no restriction. Links in
  // the root's own path may lead anywhere.
  std::string root;
  bool operator==(const FolderPath&) const = default;
};

// A folder held open: its files stay those of this folder even if the path later leads elsewhere.
class InputFolder {
 public:
  // kNotFound if there is no such folder within the root.
  static Result<InputFolder> open(const FolderPath& where);
  InputFolder(InputFolder&& other) noexcept;
  InputFolder& operator=(InputFolder&&) = delete;
  ~InputFolder();

  const std::string& path() const { return where_.path; }
  std::string path_of(const std::string& name) const { return where_.path + "/" + name; }
  // True if the folder has an entry of this name, dangling links included.
  bool has(const std::string& name) const;
  // A file directly in the folder. Errors: those of InputFile::open(); kNotFound also for a link
  // that leads out of the root.
  Result<InputFile> file(const std::string& name, size_t max_bytes = SIZE_MAX) const;
  // The whole file.
  Result<std::string> text(const std::string& name, size_t max_bytes) const;

 private:
  InputFolder(FolderPath where, int fd) : where_(std::move(where)), fd_(fd) {}
  int open_link(const std::string& name) const;

  FolderPath where_;
  int fd_;
};

// Reads a JSON file directly in the folder. Errors: those of text() and parse_json().
Result<Json> read_json(const InputFolder& folder, const std::string& name, JsonLimits limits = {});
// The same; returns JSON null if the folder has no such file.
Result<Json> read_optional_json(const InputFolder& folder, const std::string& name);

}  // namespace valora
