// One line on stderr that shows how far long work is; nothing where stderr is no terminal.
#pragma once

#include <string>

namespace valora::cli {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // takes the line away
  void clear();    // takes the line away until the next show()
  void show(int done, int total, const std::string& note);

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace valora::cli
