// Which files of a repository are needed: settings, tokenizer, templates and weights in
// safetensors, or one GGUF file; no second form of the weights.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "hub/client/listing.h"
#include "hub/kind.h"
#include "hub/names/hub_name.h"

namespace valora::hub {

struct ChosenFiles {
  std::vector<RemoteFile> files;
  bool indexed = false;  // the weights are those that kWeightsIndex, one of the files, names
};

// kUnprocessable if the repository has nothing that is read: no model or adapter, weights in
// pickles alone, or several GGUF files of which the name chooses none.
Result<ChosenFiles> choose_files(const Listing& listing, Kind kind, const HubName& name);

// The listed files of these names. kUnprocessable if one is not listed.
Result<std::vector<RemoteFile>> shards_of(const Listing& listing,
                                          const std::vector<std::string>& shards,
                                          const HubName& name);

bool is_weights(const std::string& file);  // whether the file's bytes are mostly tensors

}  // namespace valora::hub
