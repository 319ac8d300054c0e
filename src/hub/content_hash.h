// The two hashes that name a file's content on the hub.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace valora::hub {

class ContentHash {
 public:
  // digest: the expected one, whose length says which hash it is: 64 hexadecimal digits for the
  // file's SHA-256, 40 for the SHA-1 of a git blob of `size` bytes.
  ContentHash(std::string digest, uint64_t size);
  void restart();
  void add(std::string_view bytes);
  // True if the bytes so far have the digest. Call it once, at their end.
  bool matches();

 private:
  struct FreeContext {
    void operator()(void* context) const;
  };
  std::string digest_;
  uint64_t size_;
  std::unique_ptr<void, FreeContext> context_;
};

}  // namespace valora::hub
