// Names of repositories on the Hugging Face Hub, and checks of everything of theirs that becomes a
// path.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace valora::hub {

// owner/name[/FILE.gguf][@revision]
struct HubName {
  std::string owner, name;
  std::string revision;  // branch, tag or commit; empty: main
  std::string file;      // one GGUF file of the repository; empty: the whole model or adapter

  std::string id() const { return owner + "/" + name; }
  std::string revision_or_main() const { return revision.empty() ? "main" : revision; }
  // As a person would write it.
  std::string text() const;
};

// Absent for everything that cannot be a name, such as absolute paths, paths that begin with "./"
// and paths with "..".
std::optional<HubName> parse_hub_name(std::string_view text);

// True for a branch, tag or commit that is safe as a relative path.
bool is_revision(std::string_view text);
// True for 40 lower-case hexadecimal digits.
bool is_commit(std::string_view text);
// True for a commit's digits (a git blob's SHA-1) or 64 of them (SHA-256).
bool is_digest(std::string_view text);
// True for a visible name of one file, without folders.
bool is_file_name(std::string_view text);
// True for a file of a subfolder that serving reads: the settings of a module of
// sentence-transformers ("1_Pooling/config.json"), or an additional chat template.
bool is_module_file(std::string_view text);

}  // namespace valora::hub
