// Function multiversioning: a function is compiled for several instruction sets and the dynamic
// loader selects one. Off under the sanitizers, whose runtime is not initialised at that time.
#pragma once

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VALORA_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VALORA_CLONES
#endif
