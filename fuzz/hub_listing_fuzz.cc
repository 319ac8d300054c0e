// Reads what the Hugging Face Hub says about a repository's files, an index of shards, and a name.
#include <set>

#include "base/json/json.h"
#include "check.h"
#include "hub/choose_files.h"
#include "hub/client/listing.h"
#include "hub/names/hub_name.h"

using namespace valora;
using namespace valora::hub;

namespace {

void check_files(const std::vector<RemoteFile>& files) {
  std::set<std::string> names;
  for (const RemoteFile& file : files) {
    FUZZ_CHECK(is_file_name(file.name) && names.insert(file.name).second);
    FUZZ_CHECK(file.digest.empty() || is_digest(file.digest));
  }
}

void check_message(const Error& error) {
  (void)Json(error.message).dump();  // the message must be valid UTF-8
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto name = parse_hub_name(text)) {
    FUZZ_CHECK(text.front() != '/' &&
               ("/" + std::string(text) + "/").find("/../") == std::string::npos);
    FUZZ_CHECK((name->owner + "/" + name->name).find("..") == std::string::npos);
    FUZZ_CHECK(parse_hub_name(name->text()).has_value());
  }
  const HubName name{.owner = "o", .name = "n"};
  const auto shards = read_shards(text, "index");
  if (!shards.ok()) check_message(shards.error());
  const auto listing = read_listing(text, "listing");
  if (!listing.ok()) {
    check_message(listing.error());
    return 0;
  }
  FUZZ_CHECK(is_commit(listing->commit));
  check_files(listing->files);
  for (const Kind kind : {Kind::kModel, Kind::kAdapter, Kind::kAny}) {
    const auto chosen = choose_files(*listing, kind, name);
    if (!chosen.ok()) {
      check_message(chosen.error());
      continue;
    }
    FUZZ_CHECK(!chosen->files.empty());
    check_files(chosen->files);
  }
  return 0;
}
