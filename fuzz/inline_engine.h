// An Engine that answers each request at once, on the caller's thread, so that a target is the same
// every time.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "api/engine.h"

namespace valora::fuzz {

class InlineEngine final : public Engine {
 public:
  InlineEngine() {
    model_.name = "base";
    model_.max_model_len = 4096;
    model_.media_limits = {.images = 2, .videos = 1};
    AdapterCard card;
    card.name = "lens";
    card.generation = 1;
    adapters_.push_back(std::move(card));
  }

  const ModelCard& model() const override { return model_; }

  Result<RequestHandle> submit(GenerateRequest request,
                               std::shared_ptr<ResponseSink> sink) override {
    for (const AdapterUse& use : request.adapters)
      if (use.name != "lens") return not_found("no adapter " + use.name, "model");
    sink->on_start({.prompt_tokens = 3});
    if (request.task == Task::kClassify)
      sink->on_classification(
          {request.head.value_or("score"), {"a", "b"}, {0, 1}, {0.25f, 0.75f}, 1});
    else
      for (int i = 0; i < request.sampling.n; ++i) sink->on_output(chunk(i, request.sampling));
    sink->on_done({.usage = {3, 1, 0}, .prompt_token_ids = {1, 2, 3}});
    return RequestHandle{1};
  }
  void cancel(RequestHandle) override {}

  void load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) override {
    AdapterCard card;
    card.name = request.name;
    done(request.path.ends_with("missing")
             ? Result<AdapterCard>(not_found("no folder", "lora_path"))
             : card);
  }
  void unload_adapter(std::string name, std::optional<uint64_t>,
                      std::function<void(Status)> done) override {
    done(name == "lens" ? Status() : Status(not_found("no adapter")));
  }
  std::vector<AdapterCard> adapters() const override { return adapters_; }

  Result<std::vector<int32_t>> tokenize(const Prompt&, bool) const override {
    return std::vector<int32_t>{1, 2};
  }
  Result<std::string> detokenize(const std::vector<int32_t>& ids) const override {
    return std::string(ids.size(), '\xFF');
  }

  EngineStats stats() const override { return {}; }
  void set_observer(StepObserver*) override {}
  bool healthy() const override { return true; }
  void drain(std::function<void()> done) override { done(); }

 private:
  static OutputChunk chunk(int index, const SamplingParams& sampling) {
    OutputChunk out{.index = index, .text = "text"};
    TokenOutput token{{7, "\xE2\x82", -0.5f}, {}};
    for (int i = 0; i < sampling.logprobs.value_or(0); ++i) token.top.push_back({i, "t", -1});
    out.tokens.push_back(std::move(token));
    out.finish = Finish{FinishReason::kStop, int32_t{7}};
    return out;
  }

  ModelCard model_;
  std::vector<AdapterCard> adapters_;
};

}  // namespace valora::fuzz
