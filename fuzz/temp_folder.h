// Temporary folder for targets whose functions read files.
#pragma once

#include <cstdlib>
#include <filesystem>

#include "base/testing/temp_dir.h"

namespace valora::fuzz {

// In memory if /dev/shm exists: otherwise rewriting small files on disk would dominate the run
// time.
inline const testing::TempDir& temp_folder() {
  static const bool in_memory =
      std::filesystem::is_directory("/dev/shm") && ::setenv("TMPDIR", "/dev/shm", 0) == 0;
  static const testing::TempDir folder;
  (void)in_memory;
  return folder;
}

}  // namespace valora::fuzz
