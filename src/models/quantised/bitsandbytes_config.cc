// The bitsandbytes configuration, as transformers writes it.
#include "models/quantised/config.h"

namespace valora::models {

// llm_int8_skip_modules is ignored: the tensors themselves show which linears are quantised. The
// compute and storage dtypes change no stored value.
QuantisedConfig read_bitsandbytes_config(const ConfigReader& config) {
  const auto flag = [&](const char* key, const char* older) {
    return config.flag(key, config.flag(older, false));
  };
  if (flag("load_in_8bit", "_load_in_8bit"))
    config.refuse(
        "weights of bitsandbytes in 8 bits (\"load_in_8bit\") are not supported, only in 4: their "
        "products round activations");
  if (!flag("load_in_4bit", "_load_in_4bit"))
    config.refuse("\"load_in_4bit\" is not true: bitsandbytes is supported in 4 bits only");
  const std::string type = config.text("bnb_4bit_quant_type", "fp4");
  if (type != "nf4" && type != "fp4")
    config.refuse("bnb_4bit_quant_type \"" + type + "\" is not supported, only nf4 and fp4");
  QuantisedConfig made("bitsandbytes " + type, config.json().dump(), config.file());
  QuantisedConfig::Rule all{
      {}, QuantisedScheme{.packing = Packing::kCodes, .bits = 4}, "quant_method"};
  all.linears.add_all();
  made.add(std::move(all));
  return made;
}

}  // namespace valora::models
