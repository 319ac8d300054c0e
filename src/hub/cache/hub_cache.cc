#include "hub/cache/hub_cache.h"

#include <unistd.h>

#include <filesystem>

#include "base/files/file.h"
#include "base/files/write_file.h"

namespace valora::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRefBytes = 256;

Error cannot_write(const std::string& path, const std::error_code& error) {
  return unprocessable(
      path + " cannot be written: " + error.message() + "; HF_HUB_CACHE names another folder",
      path);
}

// Not by write_file(): processes that load the same at once must not share the staged file, and
// no other file may lie in refs.
Status write_ref(const std::string& repository, const std::string& revision,
                 const std::string& commit) {
  const std::string path = repository + "/refs/" + revision;
  const auto before = read_file(path, kMostRefBytes);
  if (before.ok() && *before == commit) return {};
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return cannot_write(path, error);
  const std::string staged = repository + "/.ref-" + std::to_string(::getpid());
  VALORA_CHECK(write_file(staged, commit));
  fs::rename(staged, path, error);
  if (error) return cannot_write(path, error);
  return {};
}

// name: within the snapshot, below at most one folder.
std::string link_target(const std::string& name, const std::string& digest) {
  return (name.find('/') == std::string::npos ? "../../blobs/" : "../../../blobs/") + digest;
}

// Makes a snapshot's link, or replaces one that leads to nothing or to another blob.
Status link_file(const std::string& snapshot, const RemoteFile& file) {
  const std::string path = snapshot + "/" + file.name, target = link_target(file.name, file.digest);
  std::error_code error;
  if (fs::is_symlink(path, error) && fs::read_symlink(path, error) == target) return {};
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return cannot_write(path, error);
  const std::string staged = path + ".part" + std::to_string(::getpid());
  fs::remove(staged, error);
  fs::create_symlink(target, staged, error);
  if (!error) fs::rename(staged, path, error);
  if (error) return cannot_write(path, error);
  return {};
}

}  // namespace

CachedRepository::CachedRepository(const std::string& cache, const HubName& name) {
  const std::string folder = "models--" + name.owner + "--" + name.name;
  path_ = cache + "/" + folder;
  locks_ = cache + "/.locks/" + folder;
}

std::optional<std::string> CachedRepository::find_snapshot(const std::string& revision) const {
  std::string commit = revision;
  if (!is_commit(revision)) {
    const auto text = read_file(path_ + "/refs/" + revision, kMostRefBytes);
    if (!text.ok()) return {};
    commit = text->substr(0, text->find_last_not_of(" \r\n") + 1);
    if (!is_commit(commit)) return {};
  }
  std::error_code ignored;
  std::string folder = snapshot(commit);
  if (!fs::is_directory(folder, ignored)) return {};
  return folder;
}

Status CachedRepository::make_folders() const {
  for (const std::string& folder : {path_ + "/blobs", locks_}) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return cannot_write(folder, error);
  }
  return {};
}

Result<std::string> CachedRepository::publish(const std::string& commit,
                                              const std::string& revision,
                                              const std::vector<RemoteFile>& files) const {
  const std::string folder = snapshot(commit);
  std::error_code error;
  fs::create_directories(path_ + "/snapshots", error);
  if (error) return cannot_write(folder, error);
  if (!fs::exists(folder, error)) {
    // Links do not change with their folder's name if its depth stays the same.
    const std::string staged = path_ + "/.snapshot-" + std::to_string(::getpid()) + "/" + commit;
    const std::string parent = fs::path(staged).parent_path().string();
    fs::remove_all(parent, error);
    fs::create_directories(staged, error);
    if (error) return cannot_write(folder, error);
    for (const RemoteFile& file : files) VALORA_CHECK(link_file(staged, file));
    fs::rename(staged, folder, error);
    const bool taken = error && fs::is_directory(folder);  // by another process, meanwhile
    const std::error_code fault = error;
    fs::remove_all(parent, error);
    if (fault && !taken) return cannot_write(folder, fault);
  }
  for (const RemoteFile& file : files) VALORA_CHECK(link_file(folder, file));
  if (revision != commit) VALORA_CHECK(write_ref(path_, revision, commit));
  return folder;
}

}  // namespace valora::hub
