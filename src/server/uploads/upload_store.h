// The folders of adapters that clients send. Their names are the server's own. Thread-safe.
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
  // How long a folder that no adapter name has stays: requests that wait may still read it.
  static constexpr Duration kRest = std::chrono::minutes(10);

  // dir: an absolute path that prepare() has accepted; empty: nothing is kept.
  UploadStore(std::string dir, const UploadLimits& limits, const Clock& clock)
      : dir_(std::move(dir)), limits_(limits), clock_(clock) {}

  // Removes the folders whose loads have not ended.
  ~UploadStore();
  UploadStore(const UploadStore&) = delete;
  UploadStore& operator=(const UploadStore&) = delete;

  // Makes the folder, if its parent is there, and removes what an earlier process left unfinished
  // in it. Returns its absolute path. kInvalidArgument: it cannot be made or written.
  static Result<std::string> prepare(const std::string& dir);

  bool on() const { return !dir_.empty(); }
  const UploadLimits& limits() const { return limits_; }

  struct File {
    std::string_view name, bytes;
  };
  // Writes a new folder with these files: all of it, or nothing. First removes folders of this
  // process that have been out of use for kRest; `in_use` are the paths of loaded adapters.
  // kUnavailable: UploadLimits::all is reached, or they cannot be written.
  Result<std::string> keep(std::span<const File> files, const std::set<std::string>& in_use);
  // Of keep(): an adapter name has the folder now, or never will. Neither fails.
  void loaded(const std::string& path) noexcept;
  void discard(const std::string& path) noexcept;

 private:
  struct Made {
    bool loaded = false;
    std::optional<TimePoint> unused_since;
  };

  std::vector<std::string> take_unused(const std::set<std::string>& in_use);
  static void remove(const std::string& path) noexcept;
  size_t bytes_there() const;  // of whole folders

  const std::string dir_;
  const UploadLimits limits_;
  const Clock& clock_;
  std::mutex mutex_;
  size_t being_written_ = 0;          // bytes
  std::map<std::string, Made> made_;  // by path
};

}  // namespace valora::server
