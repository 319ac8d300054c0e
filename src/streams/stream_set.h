// All streams of a server, and their folder, from which they survive a restart (docs/streams.md).
// Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/files/folder_lock.h"
#include "base/result.h"
#include "streams/stream.h"

namespace valora::streams {

struct StreamLimits {
  int streams = 64;   // of all users together
  int per_user = 16;  // of one user
};

using StreamPtr = std::shared_ptr<Stream>;

class StreamSet {
 public:
  // Takes the folder for this process; creates it if its parent exists. Empty: nothing is kept.
  // kConflict if another process has it; kInvalidArgument if it cannot be made.
  static Result<std::unique_ptr<StreamSet>> open(const std::string& dir,
                                                 const StreamLimits& limits);

  // Begins the streams that an earlier process kept; one that cannot be read is logged and left.
  // Called once, before the others.
  void resume(StreamParts parts);
  // Ends all streams; they stay in the folder.
  void stop();

  // kQueueFull: there are as many as may be. kUnavailable: the folder cannot be written.
  Result<StreamPtr> add(const std::string& owner, StreamSpec spec, bool paused);
  StreamPtr find(std::string_view id) const;  // null: none
  std::vector<StreamPtr> all() const;         // the oldest first
  Status remove(const std::string& id);
  // Pauses or goes on, and keeps that. kUnavailable as for add(), kNotFound for one that was
  // removed: nothing has changed.
  Status set_paused(const StreamPtr& stream, bool paused);

 private:
  StreamSet(std::string dir, const StreamLimits& limits, std::optional<FolderLock> lock)
      : dir_(std::move(dir)), limits_(limits), lock_(std::move(lock)) {}

  std::string path_of(std::string_view id) const;
  Status keep(const Stream& stream, bool paused) const;
  // Paused; also, whether it is to begin.
  Result<std::pair<StreamPtr, bool>> read(const std::string& path) const;
  // Its first start, of which the output is told.
  void begin(const StreamPtr& stream, bool paused) const;

  const std::string dir_;
  const StreamLimits limits_;
  const std::optional<FolderLock> lock_;
  StreamParts parts_;
  std::mutex changing_;  // one change at a time, so that limits hold and records agree
  mutable std::mutex mutex_;
  std::map<std::string, StreamPtr, std::less<>> streams_;  // ids ascend with time
  int64_t next_ = 0;
};

}  // namespace valora::streams
