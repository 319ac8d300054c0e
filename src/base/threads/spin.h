// What a thread does while it waits in a loop: the core's other thread runs, and power is saved.
#pragma once

namespace valora {

inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace valora
