#include "cli/options/hub_flags.h"

namespace valora::cli {

void add_hub_flags(Command command, HubFlags& flags, bool revision) {
  const std::string group = "Models and adapters by name";
  if (revision)
    command
        .add_option("--revision", flags.revision,
                    "Branch, tag or commit of a model that is given as OWNER/NAME")
        .group(group);
  command
      .add_flag("--no-download", flags.no_download,
                "Take names from the local caches alone, as HF_HUB_OFFLINE=1 does")
      .group(group);
  command
      .add_option("--download-dir", flags.download_dir,
                  "Cache of names, in Hugging Face's layout (default: HF_HUB_CACHE, else "
                  "~/.cache/huggingface/hub)")
      .group(group);
  command
      .add_option("--hf-token", flags.token,
                  "Token for private and gated names; HF_TOKEN, which other users of the machine "
                  "cannot see, does the same")
      .group(group);
}

}  // namespace valora::cli
