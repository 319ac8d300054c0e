// What the hub's refusals mean, each as one sentence.
#pragma once

#include <string>

#include "base/result.h"
#include "hub/client/transfer.h"
#include "hub/names/hub_name.h"
#include "hub/settings.h"

namespace valora::hub {

// The error of a reply that is not a success. file: of the repository; empty: its list of files.
Error refusal(const Reply& reply, const HubName& name, const std::string& file,
              const HubSettings& settings);

}  // namespace valora::hub
