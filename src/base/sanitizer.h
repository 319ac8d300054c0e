// Which sanitizer checks this code. g++ and Clang tell it differently.
//   VALORA_UNDER_ADDRESS_SANITIZER, VALORA_UNDER_THREAD_SANITIZER
//   VALORA_UNDER_SANITIZER: one of these
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VALORA_UNDER_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define VALORA_UNDER_THREAD_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(VALORA_UNDER_ADDRESS_SANITIZER)
#define VALORA_UNDER_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__) && !defined(VALORA_UNDER_THREAD_SANITIZER)
#define VALORA_UNDER_THREAD_SANITIZER
#endif
#if defined(VALORA_UNDER_ADDRESS_SANITIZER) || defined(VALORA_UNDER_THREAD_SANITIZER)
#define VALORA_UNDER_SANITIZER
#endif
