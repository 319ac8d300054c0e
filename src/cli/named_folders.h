// Models and adapters of the command line, as folders: names are looked up in the caches, and
// loaded into Hugging Face's if they are not there. The server's endpoints do not load by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/result.h"
#include "cli/options/engine_flags.h"
#include "hub/kind.h"
#include "hub/resolve.h"

namespace valora::cli {

class NamedFolders {
 public:
  explicit NamedFolders(HubFlags flags) : flags_(std::move(flags)) {}

  // The path of a model, an adapter, or either: what was given if it is one, else that of the name.
  // --revision is that of models, and of what may be either.
  Result<hub::Resolved> model(const std::string& text);
  Result<std::string> adapter(const std::string& text);
  Result<std::string> either(const std::string& text);

  // Puts the path of its model into the options, and the name, if it was one, into served_name
  // unless that is set.
  Status set_model(EngineOptions& options);

 private:
  Result<std::string> with_revision(const std::string& text) const;
  Result<hub::Resolved> resolve(const std::string& text, hub::Kind kind);
  Result<const hub::HubSettings*> settings();

  const HubFlags flags_;
  std::optional<hub::HubSettings> settings_;  // read when the first name comes
};

}  // namespace valora::cli
