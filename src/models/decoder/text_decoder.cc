#include "models/decoder/decoder_config.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "models/families/families.h"

namespace valora::models {

DecoderConfig read_text_decoder(const ConfigReader& text, const ConfigReader& top,
                                const std::vector<const char*>& types) {
  static const std::map<std::string, DecoderConfig (*)(const ConfigReader&, const ConfigReader&)>
      kReaders{{"llama", read_llama_config},
               {"mistral", read_mistral_config},
               {"qwen2", read_qwen2_config},
               {"qwen3", read_qwen3_config}};
  const std::string type = text.text("model_type", types.front());
  if (std::ranges::find(types, type) == types.end())
    text.refuse(fmt::format("a language model of type \"{}\" is not supported, only {}", type,
                            fmt::join(types, ", ")));
  return kReaders.at(type)(text, top);
}

}  // namespace valora::models
