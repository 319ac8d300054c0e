// The cache of huggingface_hub: CACHE/models--OWNER--NAME with blobs (files named by their hashes),
// snapshots (a folder of links for each commit) and refs (the commits of branches and tags).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/client/listing.h"
#include "hub/kind.h"
#include "hub/names/hub_name.h"

namespace valora::hub {

// Paths of one repository in the cache.
class CachedRepository {
 public:
  CachedRepository(const std::string& cache, const HubName& name);

  const std::string& path() const { return path_; }
  std::string blob(const std::string& digest) const { return path_ + "/blobs/" + digest; }
  std::string incomplete(const std::string& digest) const { return blob(digest) + ".incomplete"; }
  std::string lock(const std::string& digest) const { return locks_ + "/" + digest + ".lock"; }
  std::string snapshot(const std::string& commit) const { return path_ + "/snapshots/" + commit; }

  // The snapshot of a branch, tag or commit; absent if the cache has none.
  std::optional<std::string> find_snapshot(const std::string& revision) const;

  // Makes the folders of blobs and locks.
  Status make_folders() const;
  // Makes the commit's snapshot of files whose blobs are complete, and lets the revision refer to
  // it. A snapshot that is not there yet appears as a whole. Returns its path.
  Result<std::string> publish(const std::string& commit, const std::string& revision,
                              const std::vector<RemoteFile>& files) const;

 private:
  std::string path_, locks_;
};

// True if a folder has all that a model or an adapter needs, or the file of the name: a cache may
// hold a part, because a tokenizer alone was loaded, or a download was interrupted.
bool is_complete(const std::string& folder, Kind kind, const HubName& name);

// True if it has at least the settings and all tensors.
bool has_tensors(const std::string& folder, Kind kind, const HubName& name);

// What is given to the engine: the folder, or its GGUF file if the name chooses one or its weights
// are in one alone.
std::string path_in(const std::string& folder, const HubName& name);

// The folder into which ModelScope has loaded the name, if it is complete.
std::optional<std::string> find_modelscope(const std::vector<std::string>& folders, Kind kind,
                                           const HubName& name);

}  // namespace valora::hub
