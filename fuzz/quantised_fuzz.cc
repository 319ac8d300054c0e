// Reads a quantised linear. Input parts: quantisation configuration, tensor file.
#include "check.h"
#include "input.h"
#include "models/quantised/config.h"
#include "models/spec/load_error.h"
#include "models/weights/weights.h"
#include "temp_folder.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kOut = 8, kIn = 16;
  const testing::TempDir& dir = fuzz::temp_folder();
  fuzz::Input input(data, size);
  const auto section = parse_json(input.part(), "config.json");
  if (!section.ok()) return 0;
  dir.write("model.safetensors", input.rest());
  auto weights = models::Weights::open(dir.path());
  if (!weights.ok()) return 0;
  try {
    auto config = models::read_quantised_config(
        models::ConfigReader({{"quantization_config", *section}}, "config.json"));
    if (!config) return 0;
    (*weights)->set_quantisation(
        std::make_shared<const models::QuantisedConfig>(std::move(*config)));
    FUZZ_CHECK((*weights)->parameters() >= 0);
    const at::Tensor values = (*weights)->linear("model.a", kOut, kIn, false).unpacked();
    FUZZ_CHECK(values.size(0) == kOut && values.size(1) == kIn);
    if ((*weights)->quantised()->linears == 1)
      FUZZ_CHECK(values.isnan().any().item<bool>() == false);
  } catch (const models::LoadError& e) {
    FUZZ_CHECK(!e.error().message.empty());
    (void)Json(e.error().message).dump();
  }
  return 0;
}
