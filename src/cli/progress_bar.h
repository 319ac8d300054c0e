// A one-line progress bar on stderr. Prints nothing if stderr is not a terminal.
#pragma once

#include <string>

namespace valora::cli {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // removes the line
  void clear();    // removes the line until the next show()
  void show(int done, int total, const std::string& note);

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace valora::cli
