// VALORA_UNDER_SANITIZER: defined in code checked by the address or thread sanitizer. g++ and Clang
// tell it differently.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VALORA_UNDER_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VALORA_UNDER_SANITIZER
#endif
#endif
