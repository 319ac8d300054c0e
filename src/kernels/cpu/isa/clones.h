// Function multiversioning: compiles a function for several instruction sets; the dynamic loader
// selects one. Off under sanitizers, whose runtime is not yet initialised when the loader selects.
#pragma once

#include "base/sanitizer.h"

#if defined(__x86_64__) && !defined(VALORA_UNDER_SANITIZER)
#define VALORA_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VALORA_CLONES
#endif
