// A mapped file that becomes shorter has pages without data, and reading one of them is a bus
// error. While a map is watched, the process then ends with a message that names the file.
#pragma once

#include <cstddef>

namespace valora {

// Watches [begin, begin + size). `path` must stay valid until unwatch_map(). Maps beyond the
// thousandth are not watched: the process ends without a message.
void watch_map(const void* begin, size_t size, const char* path);
void unwatch_map(const void* begin);

}  // namespace valora
