#include "kernels/cuda/emulation/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "base/sanitizer.h"

#if defined(VALORA_UNDER_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(VALORA_UNDER_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

// Saves the callee-saved registers on the stack of `from` and continues at `to`.
extern "C" void valora_switch_stack(void** from, void* to);
asm(R"(
.text
.globl valora_switch_stack
.type valora_switch_stack,@function
valora_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size valora_switch_stack,.-valora_switch_stack
)");

namespace valora::kernels::cuda::emulation {
namespace {

constexpr int kSavedRegisters = 6;
constexpr size_t kGuardBytes = 4096;

}  // namespace

Fiber::Fiber() {
  void* mapped = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED || mprotect(mapped, kGuardBytes, PROT_NONE) != 0) throw std::bad_alloc();
  mapped_ = static_cast<std::byte*>(mapped);
  stack_ = mapped_ + kGuardBytes, stack_bytes_ = kStackBytes;
#if defined(VALORA_UNDER_THREAD_SANITIZER)
  thread_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::Fiber(Host) {
  pthread_attr_t attributes;
  void* stack = nullptr;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) throw std::bad_alloc();
  pthread_attr_getstack(&attributes, &stack, &stack_bytes_);
  pthread_attr_destroy(&attributes);
  stack_ = stack;
#if defined(VALORA_UNDER_THREAD_SANITIZER)
  thread_fiber_ = __tsan_get_current_fiber();
#endif
}

Fiber::~Fiber() {
  if (mapped_ == nullptr) return;
#if defined(VALORA_UNDER_THREAD_SANITIZER)
  __tsan_destroy_fiber(thread_fiber_);
#endif
  munmap(mapped_, kGuardBytes + kStackBytes);
}

void Fiber::reset(void (*entry)()) {
#if defined(VALORA_UNDER_ADDRESS_SANITIZER)
  ASAN_UNPOISON_MEMORY_REGION(stack_, stack_bytes_);
#endif
  // On entry to a function, the stack pointer is 8 above a multiple of 16.
  auto** top = reinterpret_cast<void**>(mapped_ + kGuardBytes + kStackBytes - 64);
  *--top = nullptr;  // the return address of `entry`
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kSavedRegisters; ++i) *--top = nullptr;
  saved_ = static_cast<void*>(top);
  fake_stack_ = nullptr;
}

void Fiber::began() {
#if defined(VALORA_UNDER_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

void Fiber::leave(Fiber& to, [[maybe_unused]] bool last) {
#if defined(VALORA_UNDER_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack_, to.stack_, to.stack_bytes_);
#endif
#if defined(VALORA_UNDER_THREAD_SANITIZER)
  __tsan_switch_to_fiber(to.thread_fiber_, 0);
#endif
  valora_switch_stack(&saved_, to.saved_);
#if defined(VALORA_UNDER_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::switch_to(Fiber& to) { leave(to, false); }

void Fiber::end(Fiber& to) {
  leave(to, true);
  std::abort();
}

}  // namespace valora::kernels::cuda::emulation
