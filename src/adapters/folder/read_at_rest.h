// Reads adapters whose files other programs may be writing. A file that is rewritten in place would
// otherwise be read in part as it was and in part as it becomes.
#pragma once

#include <functional>

#include "adapters/adapter_spec.h"
#include "base/files/file.h"
#include "base/files/input_folder.h"
#include "base/result.h"
#include "base/tensors/safetensors.h"

namespace valora::adapters {

// Reads the values of `file` again and compares them. Times alone do not show everything: writes
// through mappings change them late. kConflict: they differ.
Status compare_again(const InputFile& input, const SafeTensors& file);

// Calls `read` once no program seems to be writing to the folder, and again if it ends with
// kConflict. Blocks for some tenths of a second if a file has just been written. kConflict: the
// folder is being written.
Result<AdapterSpec> read_at_rest(const FolderPath& where,
                                 const std::function<Result<AdapterSpec>()>& read);

}  // namespace valora::adapters
