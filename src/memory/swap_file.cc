#include "memory/swap_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace valora::memory {
namespace {

std::string reason() { return std::strerror(errno); }

Digest digest_of_bytes(std::span<const std::byte> bytes) {
  return digest_of({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace

Result<std::unique_ptr<SwapFile>> SwapFile::create(const std::string& folder, int32_t blocks,
                                                   size_t block_bytes) {
  std::string path = folder + "/valora-swap-XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0)
    return invalid("the swap space cannot be created in " + folder + ": " + reason(), "swap_dir");
  unlink(path.c_str());
  std::unique_ptr<SwapFile> swap(new SwapFile(file, block_bytes));
  const auto bytes = static_cast<off_t>(blocks) * static_cast<off_t>(block_bytes);
  // If the file system cannot reserve space, posix_fallocate() writes to every block of the file.
  if (const int error = bytes > 0 ? posix_fallocate(file, 0, bytes) : 0; error != 0)
    return invalid(fmt::format("the swap space of {} bytes does not fit into {}: {}", bytes, folder,
                               std::strerror(error)),
                   "swap_space");
  swap->written_.resize(static_cast<size_t>(blocks));  // once the disk is known to hold them
  return swap;
}

SwapFile::~SwapFile() { close(file_); }

Status SwapFile::write(BlockId block, std::span<const std::byte> bytes) {
  std::optional<Digest>& written = written_.at(static_cast<size_t>(block));
  written.reset();
  const Digest digest = digest_of_bytes(bytes);
  auto at = static_cast<off_t>(block) * static_cast<off_t>(block_bytes_);
  while (!bytes.empty()) {
    const ssize_t done = pwrite(file_, bytes.data(), bytes.size(), at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return internal("writing to the swap space failed: " + reason());
    bytes = bytes.subspan(static_cast<size_t>(done));
    at += done;
  }
  written = digest;
  return {};
}

Status SwapFile::read(BlockId block, std::span<std::byte> bytes) const {
  const std::span all = bytes;
  auto at = static_cast<off_t>(block) * static_cast<off_t>(block_bytes_);
  while (!bytes.empty()) {
    const ssize_t done = pread(file_, bytes.data(), bytes.size(), at);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return internal("reading from the swap space failed: " + reason());
    if (done == 0) return internal("the swap space ends early");
    bytes = bytes.subspan(static_cast<size_t>(done));
    at += done;
  }
  if (written_.at(static_cast<size_t>(block)) != digest_of_bytes(all))
    return internal("the swap space no longer holds what was written to it");
  return {};
}

}  // namespace valora::memory
