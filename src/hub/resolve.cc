#include "hub/resolve.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files/file.h"
#include "base/text/human_bytes.h"
#include "hub/cache/hub_cache.h"
#include "hub/choose_files.h"
#include "hub/client/hub_client.h"
#include "hub/names/hub_name.h"

namespace valora::hub {
namespace {

namespace fs = std::filesystem;

uint64_t size_on_disk(const std::string& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// Of the disk on which a folder is, or will be.
uint64_t free_bytes(fs::path folder) {
  std::error_code error;
  while (!folder.empty() && !fs::exists(folder, error) && folder != folder.parent_path())
    folder = folder.parent_path();
  const fs::space_info space = fs::space(folder.empty() ? "." : folder, error);
  return error ? UINT64_MAX : space.available;
}

// Loads one name.
class Loading {
 public:
  Loading(const HubName& name, Kind kind, const HubSettings& settings, const HubEvents& events)
      : name_(name),
        kind_(kind),
        settings_(settings),
        events_(events),
        client_(settings),
        repository_(settings.cache, name) {}

  // Returns the snapshot's folder.
  Result<std::string> run() {
    VALORA_TRY(listing, client_.list(name_));
    VALORA_TRY(chosen, choose_files(listing, kind_, name_));
    for (RemoteFile& file : chosen.files)
      VALORA_CHECK(client_.complete(name_, listing.commit, file));
    Downloader downloader(settings_, name_, listing.commit, repository_, events_.progress);
    if (chosen.indexed) VALORA_CHECK(add_shards(listing, downloader, chosen.files));
    const DownloadPlan plan = plan_of(listing.commit, chosen.files);
    if (plan.missing > plan.free) return no_room(plan);
    if (plan.missing > 0 && events_.plan) events_.plan(plan);
    VALORA_CHECK(downloader.run(chosen.files));
    if (plan.missing > 0 && events_.loaded) events_.loaded(plan);
    return repository_.publish(listing.commit, name_.revision_or_main(), chosen.files);
  }

 private:
  // The index, which names them, is loaded first.
  Status add_shards(const Listing& listing, Downloader& downloader,
                    std::vector<RemoteFile>& files) {
    const RemoteFile index = *find_file(files, kWeightsIndex);
    VALORA_CHECK(downloader.run({index}));
    constexpr size_t kMostIndexBytes = size_t{32} << 20;
    VALORA_TRY(text, read_file(repository_.blob(index.digest), kMostIndexBytes));
    VALORA_TRY(names, read_shards(text, fmt::format("{} of {}", kWeightsIndex, name_.id())));
    VALORA_TRY(shards, shards_of(listing, names, name_));
    for (RemoteFile& shard : shards) {
      VALORA_CHECK(client_.complete(name_, listing.commit, shard));
      files.push_back(shard);
    }
    return {};
  }

  DownloadPlan plan_of(const std::string& commit, const std::vector<RemoteFile>& files) const {
    DownloadPlan plan{.name = name_.text(),
                      .commit = commit,
                      .cache = settings_.cache,
                      .files = files.size(),
                      .free = free_bytes(settings_.cache)};
    for (const RemoteFile& file : files) {
      plan.bytes += *file.size;
      if (is_weights(file.name)) plan.weights += *file.size;
      const uint64_t whole = size_on_disk(repository_.blob(file.digest));
      const uint64_t begun = size_on_disk(repository_.incomplete(file.digest));
      if (whole != *file.size) plan.missing += *file.size - std::min(begun, *file.size);
    }
    return plan;
  }

  static Error no_room(const DownloadPlan& plan) {
    return {ErrorCode::kUnavailable,
            fmt::format("{} needs {} more, but {} has {} free; HF_HUB_CACHE names another folder",
                        plan.name, human_bytes(plan.missing), plan.cache, human_bytes(plan.free)),
            {}};
  }

  const HubName& name_;
  const Kind kind_;
  const HubSettings& settings_;
  const HubEvents& events_;
  HubClient client_;
  CachedRepository repository_;
};

std::string not_here(const HubName& name, bool in_part, const HubSettings& settings) {
  return fmt::format("{} is no folder here and {}in the cache {}", name.text(),
                     in_part ? "only in part " : "not ", settings.cache);
}

}  // namespace

Result<Resolved> resolve(const std::string& text, Kind kind, const HubSettings& settings,
                         const HubEvents& events) {
  if (file_exists(text)) return Resolved{text, ""};
  const auto name = parse_hub_name(text);
  if (!name) return Resolved{text, ""};
  const CachedRepository repository(settings.cache, *name);
  const auto cached = repository.find_snapshot(name->revision_or_main());
  if (cached && is_complete(*cached, kind, *name))
    return Resolved{path_in(*cached, *name), name->id()};
  if (const auto folder = find_modelscope(settings.modelscope, kind, *name))
    return Resolved{path_in(*folder, *name), name->id()};
  // What is missing may not be needed; who opens the folder says what is.
  const bool usable = cached && has_tensors(*cached, kind, *name);
  if (!settings.no_download.empty()) {
    if (usable) return Resolved{path_in(*cached, *name), name->id()};
    return not_found(fmt::format("{}, and {} forbids loading it",
                                 not_here(*name, cached.has_value(), settings),
                                 settings.no_download));
  }
  const auto loaded = Loading(*name, kind, settings, events).run();
  if (loaded.ok()) return Resolved{path_in(*loaded, *name), name->id()};
  Error error = loaded.error();
  if (error.code != ErrorCode::kUnavailable) return error;
  if (usable) return Resolved{path_in(*cached, *name), name->id()};
  error.message =
      fmt::format("{}: {}", not_here(*name, cached.has_value(), settings), error.message);
  return error;
}

}  // namespace valora::hub
