// Generation defaults. Input parts: generation_config.json, config.json.
#include "check.h"
#include "input.h"
#include "serving/sampling/generation_config.h"
#include "temp_folder.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const testing::TempDir& dir = fuzz::temp_folder();
  fuzz::Input input(data, size);
  dir.write("generation_config.json", input.part());
  const auto model = parse_json(input.rest(), "config.json");
  const auto config = serving::read_generation_config(
      dir.path(), model.ok() && model->is_object() ? *model : Json::object());
  if (!config.ok()) {
    (void)Json(config.error().message).dump();
    return 0;
  }
  for (const int32_t id : config->eos_token_ids) FUZZ_CHECK(id >= 0);
  const auto settings = serving::resolve_sampling({}, *config, 20, 1);
  FUZZ_CHECK(settings.ok());
  FUZZ_CHECK(settings->temperature >= 0 && settings->top_p > 0 && settings->top_p <= 1 &&
             settings->top_k >= 0);
  return 0;
}
