// Preloaded, hides what a CPU has beyond AVX2 (AVX-512, AMX, AVX-VNNI) from a program: cpuid faults, and the handler gives
// its answer without these bits. tools/bench/avx2_only.py compiles it.
#define _GNU_SOURCE  // registers by name
#include <asm/prctl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

// libc has no function for it.
static long set_cpuid(long allowed) { return syscall(SYS_arch_prctl, ARCH_SET_CPUID, allowed); }

static void hide(unsigned leaf, unsigned subleaf, unsigned *eax, unsigned *ebx, unsigned *ecx, unsigned *edx) {
  if (leaf == 7 && subleaf == 0) {
    *ebx &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
    *ecx &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
    *edx &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
  } else if (leaf == 7 && subleaf == 1) {
    *eax &= ~(1u << 4 | 1u << 5 | 1u << 21 | 1u << 23);
    *edx &= ~(1u << 4 | 1u << 5 | 1u << 10 | 1u << 19);
  } else if (leaf == 0xd && subleaf == 0) {
    *eax &= ~(7u << 5 | 3u << 17);  // states of AVX-512 and AMX
  }
}

static void answer(int signal, siginfo_t *info, void *context) {
  (void)info;
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *instruction = (const unsigned char *)registers[REG_RIP];
  if (instruction[0] != 0x0f || instruction[1] != 0xa2) {  // another fault: let it end the program
    struct sigaction fatal = {.sa_handler = SIG_DFL};
    sigaction(signal, &fatal, NULL);
    return;
  }
  unsigned leaf = registers[REG_RAX], subleaf = registers[REG_RCX], eax, ebx, ecx, edx;
  set_cpuid(1);
  __asm__ volatile("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(leaf), "c"(subleaf));
  set_cpuid(0);
  hide(leaf, subleaf, &eax, &ebx, &ecx, &edx);
  registers[REG_RAX] = eax;
  registers[REG_RBX] = ebx;
  registers[REG_RCX] = ecx;
  registers[REG_RDX] = edx;
  registers[REG_RIP] += 2;
}

// Threads inherit the fault; programs that are executed preload this again.
__attribute__((constructor)) static void begin(void) {
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  if (set_cpuid(0) != 0) {
    static const char message[] = "avx2_only: this CPU has no cpuid faults\n";
    _exit(write(2, message, sizeof message - 1) < 0 ? 2 : 1);
  }
}
