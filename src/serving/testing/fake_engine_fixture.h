// Test fixture: a ServingEngine on a fake model.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/json/json.h"
#include "base/testing/temp_dir.h"
#include "serving/serving_engine.h"
#include "serving/testing/engine_fixture.h"
#include "serving/testing/fake_model.h"
#include "text/testing/tiny_tokenizer.h"

namespace valora::serving::testing {

inline constexpr int64_t kFakeBlockBytes = 16;

// A family of text models that also take pictures if the folder has a preprocessor_config.json.
inline const models::Family& fake_family(bool pictures = false) {
  static const auto make = [](bool takes_pictures) {
    models::Family family{};
    family.architecture = "Fake";
    family.positions = [](const models::ModelSpec& spec, int tokens,
                          std::span<const models::VisualSpan>) {
      return models::text_positions(tokens, spec.axes);
    };
    family.chat_format = [](const text::Tokenizer&, const models::ConfigReader&) {
      return text::make_chatml();
    };
    if (!takes_pictures) return family;
    family.image_placeholder = "<|image_pad|>";
    family.processor = [](const models::ConfigReader&, const media::ProcessorFiles& files) {
      return media::make_qwen2_vl_processor(files.image, files.video, {4, 2, 2});
    };
    return family;
  };
  static const models::Family text = make(false), seeing = make(true);
  return pictures ? seeing : text;
}

class FakeEngineTest : public EngineFixture {
 protected:
  FakeEngineTest() {
    folder_.write("config.json", R"({"architectures": ["Fake"]})");
    folder_.write("generation_config.json", R"({"eos_token_id": 260, "do_sample": false})");
    write_tokenizer(false);
    options_.model_path = folder_.path();
    options_.memory.pool_bytes = 256 * kFakeBlockBytes;
    options_.max_loras = 8;
  }
  ~FakeEngineTest() override { engine_.reset(); }  // before the members its steps use

  void take_pictures() {
    pictures_ = true;
    write_tokenizer(true);
    folder_.write("preprocessor_config.json",
                  R"({"patch_size": 4, "temporal_patch_size": 2, "merge_size": 2,
                      "min_pixels": 64, "max_pixels": 4096})");
  }

  Result<std::unique_ptr<LocalEngine>> make_engine() override {
    models::ModelSpec spec;
    spec.vocab = kFakeVocabulary;
    spec.max_positions = 512;
    if (pictures_) spec.image_token = 261;
    VALORA_TRY(frontend, Frontend::open(options_, fake_family(pictures_), std::move(spec)));
    VALORA_TRY(policy, scheduler::make_policy(options_.scheduling.policy));
    const int length = options_.max_model_len.value_or(512);
    frontend->limit_tokens(length);
    const auto blocks = static_cast<int32_t>(*options_.memory.pool_bytes / kFakeBlockBytes);
    EngineParts parts{.frontend = std::move(frontend), .policy = std::move(policy)};
    parts.core = {{.max_num_seqs = options_.max_num_seqs,
                   .max_num_batched_tokens = options_.max_num_batched_tokens},
                  length,
                  {.blocks = blocks,
                   .swap_blocks = swap_blocks_,
                   .block_bytes = kFakeBlockBytes,
                   .kept_limit = blocks / 8},
                  copy_bandwidth_};
    parts.model =
        std::make_unique<FakeModel>(blocks, swap_blocks_, on_step_, prepare_ahead_, on_read_);
    return std::unique_ptr<LocalEngine>(
        std::make_unique<ServingEngine>(options_, std::move(parts), clock_));
  }

  valora::testing::TempDir folder_;
  int32_t swap_blocks_ = 0;
  double copy_bandwidth_ = 0;
  FakeModel::OnStep on_step_;
  FakeModel::PrepareAhead prepare_ahead_;
  FakeModel::OnRead on_read_;
  bool pictures_ = false;

 private:
  void write_tokenizer(bool pictures) {
    Json tokenizer = text::tiny_tokenizer_json();
    if (pictures)
      tokenizer["added_tokens"].push_back(text::added_token_json(261, "<|image_pad|>", true));
    folder_.write("tokenizer.json", tokenizer.dump());
  }
};

}  // namespace valora::serving::testing
