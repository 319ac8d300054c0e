// The state of some files of a folder, to find out whether other programs write to them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/files/input_folder.h"
#include "base/result.h"

namespace valora {

class FolderSnapshot {
 public:
  // with_contents: includes digests of the .json files.
  static FolderSnapshot take(const InputFolder& folder, std::vector<std::string> names,
                             bool with_contents = false);

  // kConflict, naming the file, if one was written, replaced, added or removed since.
  Status check(const InputFolder& folder) const;
  // True if no file was changed for this long.
  bool at_rest_for(std::chrono::nanoseconds time) const;
  bool operator==(const FolderSnapshot&) const = default;

 private:
  struct File {
    uint64_t device = 0, inode = 0;
    int64_t size = 0, modified_ns = 0;
    int64_t changed_ns = 0;  // of the inode: programs cannot set it
    std::optional<Digest> content;
    bool operator==(const File&) const = default;
  };
  static std::optional<File> look(const InputFolder& folder, const std::string& name,
                                  bool with_content);

  bool with_contents_ = false;
  std::vector<std::string> names_;
  std::vector<std::optional<File>> files_;  // absent: not there, or not readable
};

// kConflict: what is wrong with a file that was not left alone.
Error changed_while_read(const std::string& path);

// The files of an adapter's folder.
inline std::vector<std::string> adapter_files() {
  return {"adapter_config.json", "adapter_model.safetensors", "adapters.safetensors",
          "valora.json"};
}

}  // namespace valora
