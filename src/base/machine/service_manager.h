// Tells the service manager that started the process (systemd with Type=notify) what it does.
#pragma once

#include <string_view>

namespace valora {

// state: "READY=1", say, as in sd_notify(3). Does nothing and is false unless
// NOTIFY_SOCKET names a socket that takes it.
bool notify_service_manager(std::string_view state);

}  // namespace valora
