// Stores uploaded adapters in folders with server-chosen names. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace valora::server {

struct UploadLimits {
  size_t one = size_t{256} << 20;  // bytes of one request
  size_t all = size_t{4} << 30;    // bytes of all folders together
};

class UploadStore {
 public:
  // How long a folder is kept after its adapter name is gone: waiting requests may still read it.
  static constexpr Duration kRest = std::chrono::minutes(10);

  // dir: an absolute path returned by prepare(); empty: uploads are off.
  UploadStore(std::string dir, const UploadLimits& limits, const Clock& clock)
      : dir_(std::move(dir)), limits_(limits), clock_(clock) {}

  // Removes folders whose loads have not finished.
  ~UploadStore();
  UploadStore(const UploadStore&) = delete;
  UploadStore& operator=(const UploadStore&) = delete;

  // Creates the folder if its parent exists, and removes unfinished uploads of earlier processes.
  // Returns its absolute path. kInvalidArgument: the folder cannot be created or written.
  static Result<std::string> prepare(const std::string& dir);

  bool on() const { return !dir_.empty(); }
  const UploadLimits& limits() const { return limits_; }

  struct File {
    std::string_view name, bytes;
  };
  // Writes the files to a new folder: all of them, or nothing. First removes this process's folders
  // that have been unused for kRest; `in_use` are the paths of loaded adapters. kUnavailable:
  // UploadLimits::all is reached, or the files cannot be written.
  Result<std::string> keep(std::span<const File> files, const std::set<std::string>& in_use);
  // Must follow keep(): an adapter now uses the folder, or none ever will. Neither fails.
  void loaded(const std::string& path) noexcept;
  void discard(const std::string& path) noexcept;

 private:
  struct Made {
    bool loaded = false;
    std::optional<TimePoint> unused_since;
  };

  std::vector<std::string> take_unused(const std::set<std::string>& in_use);
  static void remove(const std::string& path) noexcept;
  size_t bytes_there() const;  // in complete folders

  const std::string dir_;
  const UploadLimits limits_;
  const Clock& clock_;
  std::mutex mutex_;
  size_t being_written_ = 0;          // bytes
  std::map<std::string, Made> made_;  // by path
};

}  // namespace valora::server
