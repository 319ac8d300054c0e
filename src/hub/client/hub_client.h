// Asks the hub about repositories and files. Not for several threads.
#pragma once

#include <string>

#include "base/result.h"
#include "hub/client/listing.h"
#include "hub/client/transfer.h"
#include "hub/names/hub_name.h"
#include "hub/settings.h"

namespace valora::hub {

// Where a file of a commit is loaded from.
std::string file_url(const HubSettings& settings, const HubName& name, const std::string& commit,
                     const std::string& file);

class HubClient {
 public:
  explicit HubClient(const HubSettings& settings) : settings_(settings), transfer_(settings) {}

  // Error: kUnavailable if the hub cannot be asked, otherwise one of refusal().
  Result<Listing> list(const HubName& name);
  // Fills in the size and digest of a file of which the listing does not say them.
  Status complete(const HubName& name, const std::string& commit, RemoteFile& file);

 private:
  struct Answer {
    Reply reply;
    std::string body;
  };
  // Follows redirects, and asks again what may pass.
  Answer ask(const std::string& url, bool head);
  Answer ask_once(std::string url, bool head);

  const HubSettings& settings_;
  Transfer transfer_;
};

}  // namespace valora::hub
