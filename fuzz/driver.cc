// Runs one fuzz target without libFuzzer: first every given input, then seeded mutations of these.
// The same arguments produce the same inputs on every machine, so tests can use it.
//
//   TARGET [--runs N] [--seconds S] [--seed K] [--max-bytes B] [--dictionary FILE] FILE-OR-FOLDER…
//
// An input fails if it takes over 10 seconds of CPU time or over 2 GiB of memory, crashes, or
// violates an invariant. It is then saved as failed-TARGET in the working directory, and the
// command that reproduces the failure is printed.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

// Overrides weak functions of the sanitizer runtimes. Unlike environment variables, these defaults
// always apply.
extern "C" const char* __asan_default_options() {
  return "hard_rss_limit_mb=2048:max_allocation_size_mb=2048:detect_leaks=1";
}
extern "C" const char* __ubsan_default_options() {
  return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}

namespace {

using Clock = std::chrono::steady_clock;

// of CPU time, which does not depend on the machine's load
constexpr time_t kSecondsPerInput = 10;
constexpr unsigned kWaitPerInput = 60;  // of wall-clock time, for inputs that block
constexpr rlim_t kMemoryBytes = rlim_t{2} << 30;

struct Options {
  std::string program;
  std::vector<std::string> paths;
  std::string dictionary;
  size_t runs = 0;
  double seconds = 0;  // if above 0, replaces the number of runs
  uint64_t seed = 1;
  size_t max_bytes = size_t{64} << 10;
};

// State for the signal handlers, set before each input.
const char* failure_file = nullptr;
const char* program = nullptr;
const std::string* current = nullptr;

void write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n <= 0) return;
    data += n;
    size -= static_cast<size_t>(n);
  }
}

void say(const char* text) { write_all(STDERR_FILENO, text, std::strlen(text)); }

void keep_current_input() {
  if (!current) return;
  const int fd = ::open(failure_file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd >= 0) {
    write_all(fd, current->data(), current->size());
    ::close(fd);
  }
  current = nullptr;
  say("\nfuzz: the input was written to ");
  say(failure_file);
  say("; repeat with:\n  ");
  say(program);
  say(" ");
  say(failure_file);
  say("\n");
}

void on_signal(int signal) {
  if (signal == SIGPROF || signal == SIGALRM) say("fuzz: one input took more than 10 seconds\n");
  keep_current_input();
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void set_up_limits() {
  std::signal(SIGABRT, on_signal);
  std::signal(SIGALRM, on_signal);
  std::signal(SIGPROF, on_signal);
  if (__sanitizer_set_death_callback) return __sanitizer_set_death_callback(keep_current_input);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_signal);
  const rlimit limit{kMemoryBytes, kMemoryBytes};
  ::setrlimit(RLIMIT_DATA, &limit);
}

std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void set_timers(time_t cpu_seconds, unsigned wait_seconds) {
  const itimerval timer{{0, 0}, {cpu_seconds, 0}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
  ::alarm(wait_seconds);
}

void run_one(const std::string& input) {
  current = &input;
  set_timers(kSecondsPerInput, kWaitPerInput);
  // Allocated with the input's exact size, so that the sanitizer detects reads past its end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  set_timers(0, 0);
  current = nullptr;
}

Options parse(int argc, char** argv) {
  Options options;
  options.program = argv[0];
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (!name.starts_with("--")) {
      options.paths.push_back(name);
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (name == "--runs")
      options.runs = std::strtoull(value, nullptr, 10);
    else if (name == "--seconds")
      options.seconds = std::strtod(value, nullptr);
    else if (name == "--seed")
      options.seed = std::strtoull(value, nullptr, 10);
    else if (name == "--max-bytes")
      options.max_bytes = std::strtoull(value, nullptr, 10);
    else if (name == "--dictionary")
      options.dictionary = value;
    else
      std::fprintf(stderr, "fuzz: unknown option %s\n", name.c_str()), std::exit(2);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::string name = std::filesystem::path(options.program).filename();
  const std::string failure = "failed-" + name;
  failure_file = failure.c_str();
  program = options.program.c_str();

  std::vector<std::string> corpus;
  for (const std::string& file : files_of(options.paths)) corpus.push_back(read_whole(file));
  if (corpus.empty()) {
    std::fprintf(stderr, "fuzz: %s has no inputs\n", name.c_str());
    return 2;
  }
  set_up_limits();
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  for (const std::string& input : corpus) run_one(input);
  const size_t inputs = corpus.size();
  const std::string words = options.dictionary.empty() ? "" : read_whole(options.dictionary);
  valora::fuzz::Mutator mutator(std::move(corpus), valora::fuzz::parse_dictionary(words),
                                options.seed);
  size_t runs = 0;
  for (; options.seconds > 0 ? seconds() < options.seconds : runs < options.runs; ++runs)
    run_one(mutator.next(options.max_bytes));
  std::printf("%s: %zu inputs and %zu mutations in %.1f s\n", name.c_str(), inputs, runs,
              seconds());
  return 0;
}
