// Reports errors of kernels and where they occur. Invalid memory accesses are reported the same
// way.
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/sanitizer.h"
#include "kernels/cuda/emulation/block.h"
#include "kernels/cuda/emulation/kernel_name.h"
#include "kernels/cuda/emulation/machine.h"

#if defined(VALORA_UNDER_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace valora::kernels::cuda::emulation {
namespace {

std::string without(std::string text, const std::string& part) {
  for (size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
  return text;
}

// Demangles to `decode_kernel<__nv_bfloat16, Ring<128> >`, without namespaces and parameters.
std::string readable(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  std::string text = name != nullptr ? name.get() : symbol;
  for (const char* part : {"(anonymous namespace)::", "valora::kernels::cuda::", "void "})
    text = without(text, part);
  return text.substr(0, text.find('('));
}

}  // namespace

// Uses the program's symbol table, because kernels are not exported.
std::string kernel_name(const void* kernel) {
  Dl_info info{};
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat size{};
  if (file < 0 || fstat(file, &size) != 0 || dladdr(kernel, &info) == 0) return "a kernel";
  void* mapped = mmap(nullptr, static_cast<size_t>(size.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) return "a kernel";
  const auto* image = static_cast<const std::byte*>(mapped);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(image + header->e_shoff);
  const auto base = header->e_type == ET_DYN ? reinterpret_cast<uintptr_t>(info.dli_fbase) : 0;
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(image + sections[s].sh_offset);
    const auto* names =
        reinterpret_cast<const char*>(image + sections[sections[s].sh_link].sh_offset);
    for (size_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i)
      if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC &&
          symbols[i].st_value + base == reinterpret_cast<uintptr_t>(kernel))
        return readable(names + symbols[i].st_name);
  }
  return "a kernel";
}

namespace {

void print_place() {
  if (current_block == nullptr) return;
  const uint3 &b = current_block->index(), &t = current_block->thread_index();
  std::fprintf(stderr, "  in %s, block (%u, %u, %u), thread %u, emulated sm_%d\n",
               kernel_name(current_block->call().kernel).c_str(), b.x, b.y, b.z, t.x,
               machine().capability);
}

#if defined(VALORA_UNDER_ADDRESS_SANITIZER)
const bool kInstalled = [] {
  __sanitizer_set_death_callback(print_place);
  return true;
}();
#else
void on_invalid_access(int, siginfo_t* signal, void*) {
  if (current_block == nullptr) {
    std::fprintf(stderr, "invalid access to %p\n", signal->si_addr);
    std::abort();
  }
  char text[64];
  std::snprintf(text, sizeof text, "accesses %p, which is not its memory", signal->si_addr);
  fail(text);  // NOLINT(bugprone-signal-handler): the program ends
}

// The handler has its own stack, because a fiber's stack may be what overflowed.
const bool kInstalled = [] {
  constexpr size_t kStackBytes = 256 << 10;
  static std::byte stack[kStackBytes];
  stack_t own{};
  own.ss_sp = stack, own.ss_size = kStackBytes;
  struct sigaction action{};
  action.sa_sigaction = on_invalid_access, action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaltstack(&own, nullptr);
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  return true;
}();
#endif

}  // namespace

void fail(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "EMULATION: %s\n", what.c_str());
  print_place();
  std::fflush(stderr);
  std::_Exit(70);
}

void fail_misaligned(const void* address, int bytes) {
  char text[96];
  std::snprintf(text, sizeof text, "accesses %d bytes at %p, which is not a multiple of %d", bytes,
                address, bytes);
  fail(text);
}

}  // namespace valora::kernels::cuda::emulation
