// Names of GGUF files: the file that a model path denotes, its vision part, and the parts of a
// split model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora {

// "NAME-00002-of-00003.gguf": part 2 of 3.
struct GgufPartName {
  std::string stem;  // the path up to "-00002-of-00003.gguf"
  int64_t number = 0, count = 0;
  // The path of another part.
  std::string path(int64_t other) const;
};
std::optional<GgufPartName> gguf_part_name(const std::string& path);

// True if a file of this name holds the vision part of a model: "mmproj" is in the name, in any
// case.
bool is_mmproj_name(std::string_view name);
// True if a file of this name is a model, or the first part of one.
bool is_gguf_model_name(const std::string& path);

// Among files of one folder: the vision part. Of several whose names differ in their type alone,
// the first of F32, F16, BF16 and any other is taken.
struct MmprojChoice {
  std::string file;      // empty: there is none
  bool several = false;  // that could be meant
};
MmprojChoice choose_mmproj(const std::vector<std::string>& files);

// The GGUF file that a model path denotes: the path itself if it is a file with GGUF's magic number
// or the extension .gguf; or the only model in a folder without config.json, adapter_config.json
// and tokenizer.json, as a .gguf file or the first of its parts. Absent in all other cases, several
// models included. Vision parts do not count.
std::optional<std::string> find_gguf(const std::string& path);

// The file with the vision part of the model in `model_file`; empty: there is none. given: its
// path; "none": leave it out; empty: choose_mmproj() in the folder of model_file. kUnprocessable,
// naming one, if several could be meant; not found if `given` is no file.
Result<std::string> find_mmproj(const std::string& model_file, const std::string& given);

}  // namespace valora
