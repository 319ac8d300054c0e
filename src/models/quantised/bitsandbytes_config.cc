// The bitsandbytes configuration, as transformers writes it.
#include "models/quantised/config.h"

namespace valora::models {

// llm_int8_skip_modules is ignored: the tensors themselves show which linears are quantised. The
// compute and storage dtypes change no stored value; neither does llm_int8_threshold, above which
// bitsandbytes does not round inputs.
QuantisedConfig read_bitsandbytes_config(const ConfigReader& config) {
  const auto flag = [&](const char* key, const char* older) {
    return config.flag(key, config.flag(older, false));
  };
  const bool eight = flag("load_in_8bit", "_load_in_8bit"),
             four = flag("load_in_4bit", "_load_in_4bit");
  if (eight == four)
    config.refuse("one of \"load_in_4bit\" and \"load_in_8bit\" must be true, and only one");
  const std::string type = eight ? "int8" : config.text("bnb_4bit_quant_type", "fp4");
  if (four && type != "nf4" && type != "fp4")
    config.refuse("bnb_4bit_quant_type \"" + type + "\" is not supported, only nf4 and fp4");
  const QuantisedScheme scheme{.packing = eight ? Packing::kRows : Packing::kCodes,
                               .bits = eight ? 8 : 4};
  QuantisedConfig made("bitsandbytes " + type, config.json().dump(), config.file());
  QuantisedConfig::Rule all{{}, scheme, "quant_method"};
  all.linears.add_all();
  made.add(std::move(all));
  return made;
}

}  // namespace valora::models
