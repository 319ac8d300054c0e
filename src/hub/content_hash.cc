#include "hub/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <new>

namespace valora::hub {
namespace {

constexpr size_t kSha256Digits = 64;

EVP_MD_CTX* evp(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

void ContentHash::FreeContext::operator()(void* context) const { EVP_MD_CTX_free(evp(context)); }

ContentHash::ContentHash(std::string digest, uint64_t size)
    : digest_(std::move(digest)), size_(size), context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  restart();
}

void ContentHash::restart() {
  const bool sha256 = digest_.size() == kSha256Digits;
  EVP_DigestInit_ex(evp(context_.get()), sha256 ? EVP_sha256() : EVP_sha1(), nullptr);
  if (sha256) return;
  add(fmt::format("blob {}", size_));
  add(std::string_view("\0", 1));
}

void ContentHash::add(std::string_view bytes) {
  EVP_DigestUpdate(evp(context_.get()), bytes.data(), bytes.size());
}

bool ContentHash::matches() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> value{};
  unsigned int length = 0;
  if (EVP_DigestFinal_ex(evp(context_.get()), value.data(), &length) != 1) return false;
  std::string digits;
  for (unsigned int i = 0; i < length; ++i) digits += fmt::format("{:02x}", value[i]);
  return digits == digest_;
}

}  // namespace valora::hub
