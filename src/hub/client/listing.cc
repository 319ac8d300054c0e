#include "hub/client/listing.h"

#include <algorithm>
#include <set>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "base/text/visible_text.h"
#include "hub/names/hub_name.h"

namespace valora::hub {
namespace {

constexpr JsonLimits kLimits{.max_bytes = size_t{32} << 20, .max_depth = 32};

std::string shown_name(const std::string& name) { return visible(shortened(name, 80)); }

Result<RemoteFile> read_sibling(const Json& json, const std::string& name) {
  RemoteFile file{.name = name};
  VALORA_TRY(size, optional_field<int64_t>(json, "size"));
  VALORA_TRY(blob, field_or<std::string>(json, "blobId", ""));
  file.digest = std::move(blob);
  std::optional<int64_t> bytes = size;
  if (const auto lfs = json.find("lfs"); lfs != json.end() && lfs->is_object()) {
    VALORA_TRY(sha256, field_or<std::string>(*lfs, "sha256", ""));
    VALORA_TRY(lfs_size, optional_field<int64_t>(*lfs, "size"));
    file.digest = std::move(sha256);
    if (lfs_size) bytes = lfs_size;
  }
  if (bytes && *bytes < 0) return invalid("a size is negative");
  if (bytes) file.size = static_cast<uint64_t>(*bytes);
  if (!file.digest.empty() && !is_digest(file.digest))
    return invalid("the digest of " + shown_name(name) + " is not one");
  return file;
}

Result<Listing> listing_of(const Json& json) {
  if (!json.is_object()) return invalid("it is not an object");
  Listing listing;
  VALORA_TRY(commit, field_or<std::string>(json, "sha", ""));
  if (!is_commit(commit)) return invalid("\"sha\" is not a commit");
  listing.commit = std::move(commit);
  const auto siblings = json.find("siblings");
  if (siblings == json.end() || !siblings->is_array()) return invalid("\"siblings\" is missing");
  std::set<std::string> names;
  for (const Json& sibling : *siblings) {
    if (!sibling.is_object()) return invalid("a file is not an object");
    VALORA_TRY(name, field_or<std::string>(sibling, "rfilename", ""));
    const bool below = name.find('/') != std::string::npos;
    if (below && !is_module_file(name)) continue;
    if (!below && !is_file_name(name))
      return invalid("a file is named \"" + shown_name(name) + "\"");
    if (!names.insert(name).second) return invalid("it lists " + shown_name(name) + " twice");
    VALORA_TRY(file, read_sibling(sibling, name));
    listing.files.push_back(std::move(file));
  }
  std::ranges::sort(listing.files, {}, &RemoteFile::name);
  return listing;
}

}  // namespace

Result<Listing> read_listing(std::string_view text, std::string_view what) {
  VALORA_TRY(json, parse_json(text, what, kLimits));
  auto listing = listing_of(json);
  if (!listing.ok())
    return invalid(std::string(what) + " is no list of files: " + listing.error().message);
  return listing;
}

Result<std::vector<std::string>> read_shards(std::string_view text, std::string_view what) {
  VALORA_TRY(json, parse_json(text, what, kLimits));
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object())
    return invalid(std::string(what) + " has no \"weight_map\"");
  std::set<std::string> names;
  for (const Json& value : *map) {
    const auto* name = value.get_ptr<const std::string*>();
    if (name == nullptr || !is_file_name(*name))
      return invalid(std::string(what) + ": a tensor's file is not the name of one");
    names.insert(*name);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

const RemoteFile* find_file(const std::vector<RemoteFile>& files, std::string_view name) {
  const auto found = std::ranges::find(files, name, &RemoteFile::name);
  return found == files.end() ? nullptr : &*found;
}

}  // namespace valora::hub
