// Writes that wait for no reader.
#pragma once

#include <string_view>

namespace valora {

// Writes to a descriptor what its reader takes at once; returns the number of bytes written. Waits
// neither for a full pipe nor for a stopped terminal, and does not need O_NONBLOCK, which other
// processes with the same output would share. A broken pipe is an error like any other if SIGPIPE
// is ignored.
size_t write_now(int descriptor, std::string_view text);

}  // namespace valora
