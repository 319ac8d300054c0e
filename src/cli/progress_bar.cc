#include "cli/progress_bar.h"

#include <unistd.h>

#include <cstdio>

namespace valora::cli {
namespace {

constexpr int kWidth = 30;

}  // namespace

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void ProgressBar::show(int done, int total, const std::string& note) {
  if (!terminal_ || total < 1) return;
  const int filled = static_cast<int>(static_cast<long>(kWidth) * done / total);
  const std::string bar = std::string(static_cast<size_t>(filled), '#') +
                          std::string(static_cast<size_t>(kWidth - filled), ' ');
  std::fprintf(stderr, "\r\033[K[%s] %d/%d  %s", bar.c_str(), done, total, note.c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace valora::cli
