#include "streams/stream_set.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/files/file.h"
#include "base/files/write_file.h"
#include "base/json/parse_ordered.h"

namespace valora::streams {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRecordBytes = size_t{2} << 20;

int64_t microseconds_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<std::unique_ptr<StreamSet>> StreamSet::open(const std::string& dir,
                                                   const StreamLimits& limits) {
  std::optional<FolderLock> lock;
  if (!dir.empty()) {
    std::error_code fault;
    fs::create_directory(dir, fault);
    if (fault)
      return invalid(fmt::format("{} cannot be made: {}", dir, fault.message()), "streams_dir");
    VALORA_TRY(taken, FolderLock::take(dir));
    lock.emplace(std::move(taken));
  }
  return std::unique_ptr<StreamSet>(new StreamSet(dir, limits, std::move(lock)));
}

std::string StreamSet::path_of(std::string_view id) const {
  return fmt::format("{}/{}.json", dir_, id);
}

Status StreamSet::keep(const Stream& stream, bool paused) const {
  if (dir_.empty()) return {};
  const OrderedJson record{{"id", stream.id()},
                           {"owner", stream.owner()},
                           {"paused", paused},
                           {"spec", stream.spec().json}};
  const Status written = write_file(path_of(stream.id()), record.dump(1) + "\n");
  if (written.ok()) return {};
  spdlog::error("a stream cannot be kept: {}", written.error().message);
  return Error{ErrorCode::kUnavailable, "the server's folder of streams cannot be written", {}};
}

Result<std::pair<StreamPtr, bool>> StreamSet::read(const std::string& path) const {
  VALORA_TRY(text, read_file(path, kMostRecordBytes));
  const OrderedJson record = parse_ordered(text);
  if (!record.is_object() || !record.contains("spec"))
    return unprocessable(path + " is no stream's record", "streams_dir");
  VALORA_TRY(spec, parse_stream_spec(record["spec"].dump()));
  auto stream =
      std::make_shared<Stream>(record.value("id", std::string()),
                               record.value("owner", std::string()), std::move(spec), parts_);
  return std::pair{std::move(stream), record.value("paused", false)};
}

void StreamSet::begin(const StreamPtr& stream, bool paused) const {
  if (parts_.output) parts_.output->added(*stream);
  if (!paused) stream->start();
}

void StreamSet::resume(StreamParts parts) {
  parts_ = std::move(parts);
  if (dir_.empty()) return;
  std::error_code ignored;
  std::set<fs::path> paths;  // the oldest stream first
  for (const auto& entry : fs::directory_iterator(dir_, ignored)) paths.insert(entry.path());
  for (const fs::path& path : paths) {
    const std::string name = path.filename();
    if (!name.starts_with("stream_") || !name.ends_with(".json")) continue;
    auto found = read(path);
    if (!found.ok() || found->first->id() + ".json" != name) {
      spdlog::error("{} is left: {}", path.string(),
                    found.ok() ? "its id is another" : found.error().message);
      continue;
    }
    const auto& [stream, paused] = *found;
    const std::string_view number = std::string_view(name).substr(std::strlen("stream_"));
    int64_t id = 0;
    std::from_chars(number.data(), number.data() + number.size(), id, 16);
    next_ = std::max(next_, id);  // also if the clock was set back
    begin(stream, paused);
    const std::lock_guard lock(mutex_);
    streams_[stream->id()] = stream;
  }
}

void StreamSet::stop() {
  std::map<std::string, StreamPtr, std::less<>> streams;
  {
    const std::lock_guard lock(mutex_);
    streams.swap(streams_);
  }
  for (const auto& [_, stream] : streams) stream->end();
}

Result<StreamPtr> StreamSet::add(const std::string& owner, StreamSpec spec, bool paused) {
  const std::lock_guard change(changing_);
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    const auto of_owner = std::ranges::count_if(
        streams_, [&](const auto& entry) { return entry.second->owner() == owner; });
    const bool full = static_cast<int>(streams_.size()) >= limits_.streams;
    if (full || of_owner >= limits_.per_user)
      return Error{
          ErrorCode::kQueueFull,
          full ? fmt::format("the server has {} streams, the most that it takes", limits_.streams)
               : fmt::format("you have {} streams, the most of one user", of_owner),
          {}};
    next_ = std::max(next_ + 1, microseconds_now());
    id = fmt::format("stream_{:016x}", next_);
  }
  auto stream = std::make_shared<Stream>(id, owner, std::move(spec), parts_);
  VALORA_CHECK(keep(*stream, paused));
  begin(stream, paused);
  const std::lock_guard lock(mutex_);
  return streams_[id] = std::move(stream);
}

StreamPtr StreamSet::find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

std::vector<StreamPtr> StreamSet::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<StreamPtr> out;
  for (const auto& [_, stream] : streams_) out.push_back(stream);
  return out;
}

Status StreamSet::remove(const std::string& id) {
  StreamPtr stream;
  {
    const std::lock_guard change(changing_);
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(id);
    if (found == streams_.end()) return not_found("there is no such stream", "id");
    if (!dir_.empty()) {
      std::error_code fault;
      fs::remove(path_of(id), fault);
      if (fault)
        return Error{ErrorCode::kUnavailable,
                     "the stream's record cannot be removed: " + fault.message(),
                     {}};
    }
    stream = std::move(found->second);
    streams_.erase(found);
  }
  stream->end();  // others may still hold it
  if (parts_.output) parts_.output->removed(id);
  return {};
}

Status StreamSet::set_paused(const StreamPtr& stream, bool paused) {
  const std::lock_guard change(changing_);
  if (find(stream->id()) != stream) return not_found("there is no such stream", "id");
  VALORA_CHECK(keep(*stream, paused));
  if (paused)
    stream->pause();
  else
    stream->start();
  return {};
}

}  // namespace valora::streams
