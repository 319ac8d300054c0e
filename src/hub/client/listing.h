// What the hub says about a repository's files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora::hub {

struct RemoteFile {
  std::string name;
  std::optional<uint64_t> size;  // absent, like the digest, if the server does not say it here
  std::string digest;            // is_digest(); empty: unknown
};

struct Listing {
  std::string commit;             // is_commit()
  std::vector<RemoteFile> files;  // of the top folder, by name; each is_file_name()
};

// Reads the answer of /api/models/OWNER/NAME/revision/REVISION?blobs=true. kInvalidArgument if it
// is not one, or if names or digests are not what paths may be made of. `what` names its source.
Result<Listing> read_listing(std::string_view text, std::string_view what);

// The files that the weight_map of model.safetensors.index.json names, each is_file_name(), by
// name.
Result<std::vector<std::string>> read_shards(std::string_view text, std::string_view what);

const RemoteFile* find_file(const std::vector<RemoteFile>& files, std::string_view name);

}  // namespace valora::hub
