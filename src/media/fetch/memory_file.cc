#include "media/fetch/memory_file.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

extern "C" {
#include <libavformat/avio.h>
#include <libavutil/error.h>
}

namespace valora::media {

int read_memory(void* opaque, uint8_t* out, int count) {
  auto& file = *static_cast<MemoryFile*>(opaque);
  const int64_t left = int64_t(file.bytes.size()) - file.at;
  if (left <= 0) return AVERROR_EOF;
  const int taken = static_cast<int>(std::min<int64_t>(count, left));
  std::memcpy(out, file.bytes.data() + file.at, taken);
  file.at += taken;
  return taken;
}

int64_t seek_memory(void* opaque, int64_t offset, int whence) {
  auto& file = *static_cast<MemoryFile*>(opaque);
  const int64_t size = file.bytes.size();
  if (whence & AVSEEK_SIZE) return size;
  const int from = whence & ~AVSEEK_FORCE;
  const int64_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? file.at : size;
  if (offset < -base || offset > size - base) return AVERROR(EINVAL);
  return file.at = base + offset;
}

}  // namespace valora::media
