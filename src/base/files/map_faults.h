// If a mapped file shrinks, reading its missing pages raises SIGBUS. While a map is watched, the
// process then ends with a message that names the file.
#pragma once

#include <cstddef>

namespace valora {

// Watches [begin, begin + size). `path` must stay valid until unregister_mapping(). At most a
// thousand mappings are watched; a fault in any other one ends the process without a message.
void register_mapping(const void* begin, size_t size, const char* path);
void unregister_mapping(const void* begin);

}  // namespace valora
