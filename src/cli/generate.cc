// `valora generate`: one answer through the serving path, without HTTP.
#include <cstdio>
#include <filesystem>
#include <future>
#include <iostream>

#include "api/waiting_calls.h"
#include "base/json/json.h"
#include "cli/answer_form_flags.h"
#include "cli/command.h"
#include "cli/named_folders.h"
#include "cli/options/engine_flags.h"
#include "cli/options/media_flags.h"
#include "cli/progress/format.h"
#include "engine/start/start_engine.h"

namespace valora::cli {
namespace {

struct GenerateFlags {
  EngineOptions engine;
  HubFlags hub;
  std::vector<std::string> adapters;  // DIR or DIR:scale; DIR may be a name
  std::vector<std::string> images, videos;
  std::string prompt, system, head;
  SamplingParams sampling;
  AnswerFormFlags form;
  MediaFlags media;
  int max_tokens = 256;
  double temperature = 0;
  bool raw = false, json = false, classify = false;
};

// The collected answer.
struct Answer {
  std::string text;
  std::vector<TokenOutput> tokens;
  Finish finish;
  std::optional<Classification> classification;
  FinalInfo info;
};

class CollectingSink final : public ResponseSink {
 public:
  explicit CollectingSink(bool echo) : echo_(echo) {}
  void on_output(OutputChunk chunk) override {
    answer_.text += chunk.text;
    answer_.tokens.insert(answer_.tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
    if (chunk.finish) answer_.finish = *chunk.finish;
    if (echo_) std::cout << chunk.text << std::flush;
  }
  void on_classification(Classification result) override {
    answer_.classification = std::move(result);
  }
  void on_done(const FinalInfo& info) override {
    answer_.info = info;
    promise_.set_value(std::move(answer_));
  }
  void on_error(const Error& error) override { promise_.set_value(error); }
  Result<Answer> wait() { return promise_.get_future().get(); }

 private:
  bool echo_;
  Answer answer_;
  std::promise<Result<Answer>> promise_;
};

// An adapter of the command line.
struct GivenAdapter {
  AdapterUse use;  // named as given
  std::string path;
};

// Parses "DIR" or "DIR:0.5". An existing folder with the whole text as its name takes precedence.
AdapterUse parse_adapter(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || std::filesystem::exists(text)) return {text, 1};
  char* end = nullptr;
  const float scale = std::strtof(text.c_str() + colon + 1, &end);
  if (end == text.c_str() + colon + 1 || *end) return {text, 1};
  return {text.substr(0, colon), scale};
}

Result<std::vector<GivenAdapter>> find_adapters(const std::vector<std::string>& flags,
                                                NamedFolders& folders) {
  std::vector<GivenAdapter> adapters;
  for (const std::string& flag : flags) {
    AdapterUse use = parse_adapter(flag);
    VALORA_TRY(path, folders.adapter(use.name));
    adapters.push_back({std::move(use), std::move(path)});
  }
  return adapters;
}

Result<std::vector<AdapterUse>> load_adapters(serving::LocalEngine& engine,
                                              const std::vector<GivenAdapter>& adapters) {
  std::vector<AdapterUse> uses;
  for (const auto& [use, path] : adapters) {
    VALORA_TRY(card, load_adapter_sync(engine, {.name = use.name, .path = path}));
    uses.push_back({card.name, use.scale});
  }
  return uses;
}

std::string file_url(const std::string& path) {
  if (path.starts_with("data:") || path.starts_with("http://") || path.starts_with("https://"))
    return path;
  return "file://" + std::filesystem::absolute(path).string();
}

Prompt make_prompt(const GenerateFlags& flags) {
  if (flags.raw) return flags.prompt;
  ChatPrompt chat;
  if (!flags.system.empty()) chat.messages.push_back({"system", {flags.system}});
  ChatMessage user{"user", {}};
  for (const std::string& image : flags.images)
    user.parts.push_back(MediaRef{MediaRef::Kind::kImage, file_url(image)});
  for (const std::string& video : flags.videos)
    user.parts.push_back(MediaRef{MediaRef::Kind::kVideo, file_url(video)});
  user.parts.push_back(flags.prompt);
  chat.messages.push_back(std::move(user));
  return chat;
}

Json token_json(const TokenLogprob& token) {
  return {{"id", token.id},
          {"bytes", std::vector<uint8_t>(token.bytes.begin(), token.bytes.end())},
          {"logprob", token.logprob}};
}

Json to_json(const Answer& answer, bool logprobs) {
  Json json;
  json["text"] = answer.text;
  json["token_ids"] = Json::array();
  for (const TokenOutput& token : answer.tokens) json["token_ids"].push_back(token.chosen.id);
  json["prompt_token_ids"] = answer.info.prompt_token_ids;
  json["finish_reason"] = finish_reason_name(answer.finish.reason);
  json["cached_tokens"] = answer.info.usage.cached_tokens;
  json["logprobs"] = nullptr;
  if (logprobs) {
    json["logprobs"] = Json::array();
    for (const TokenOutput& token : answer.tokens) {
      Json entry = token_json(token.chosen);
      entry["top"] = Json::array();
      for (const TokenLogprob& other : token.top) entry["top"].push_back(token_json(other));
      json["logprobs"].push_back(std::move(entry));
    }
  }
  json["labels"] = nullptr;
  if (const auto& c = answer.classification) {
    json["labels"] = Json::array();
    for (size_t i = 0; i < c->labels.size(); ++i)
      json["labels"].push_back(
          {{"label", c->labels[i]}, {"logit", c->logits[i]}, {"prob", c->probs[i]}});
    json["label"] = c->labels[c->best];
  }
  const RequestTimings& t = answer.info.timings;
  json["timings"] = {{"queue_seconds", t.queue_seconds},   {"adapter_seconds", t.adapter_seconds},
                     {"kv_seconds", t.kv_seconds},         {"prefill_seconds", t.prefill_seconds},
                     {"decode_seconds", t.decode_seconds}, {"ttft_seconds", t.ttft_seconds},
                     {"e2e_seconds", t.e2e_seconds}};
  return json;
}

void print_labels(const Classification& c) {
  for (size_t i = 0; i < c.labels.size(); ++i)
    std::printf("%s %-24s %.4f\n", static_cast<int>(i) == c.best ? "*" : " ", c.labels[i].c_str(),
                c.probs[i]);
}

int run_generate(GenerateFlags& flags) {
  if (flags.raw && (!flags.images.empty() || !flags.videos.empty() || !flags.system.empty()))
    return fail(
        invalid("--raw takes no --image, --video or --system: the prompt is sent as it is"));
  flags.engine.fetch.allowed_local_path = "/";  // whoever runs the command may read any file
  flags.engine.fetch.allow_http = true;
  flags.engine.fetch.private_addresses = true;
  flags.engine.fetch.use_proxy = true;
  flags.engine.max_num_seqs = std::max(1, flags.sampling.n);
  auto constraint = constraint_of(flags.form);
  if (!constraint.ok()) return fail(constraint.error());
  if (const Status s = apply_media(flags.media, flags.engine); !s.ok()) return fail(s.error());
  NamedFolders folders(flags.hub);
  if (const Status s = folders.set_model(flags.engine); !s.ok()) return fail(s.error());
  const auto given = find_adapters(flags.adapters, folders);
  if (!given.ok()) return fail(given.error());
  auto engine = start_engine(flags.engine);
  if (!engine.ok()) return fail(engine.error());
  auto adapters = load_adapters(**engine, *given);
  if (!adapters.ok()) return fail(adapters.error());

  GenerateRequest request;
  request.prompt = make_prompt(flags);
  request.adapters = std::move(adapters).value();
  request.sampling = flags.sampling;
  request.sampling.max_tokens = flags.max_tokens;
  request.sampling.temperature = flags.temperature;
  request.constraint = std::move(constraint).value();
  request.task = flags.classify ? Task::kClassify : Task::kGenerate;
  if (!flags.head.empty()) request.head = flags.head;
  auto sink = std::make_shared<CollectingSink>(!flags.json && !flags.classify);
  if (auto handle = (*engine)->submit(std::move(request), sink); !handle.ok())
    return fail(handle.error());
  auto answer = sink->wait();
  if (!answer.ok()) return fail(answer.error());
  if (flags.json)
    print_json(to_json(*answer, flags.sampling.logprobs.has_value()));
  else if (flags.classify && answer->classification)
    print_labels(*answer->classification);
  else
    std::cout << "\n";
  return 0;
}

}  // namespace

void add_generate(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<GenerateFlags>();
  Command c =
      app.add_subcommand("generate", "Answer one prompt, through the serving engine without HTTP");
  add_engine_flags(c, flags->engine);
  add_hub_flags(c, flags->hub);
  c.add_option("--adapter", flags->adapters,
               "Adapter, as DIR or OWNER/NAME, or with a factor as DIR:scale; the effects of "
               "several are summed");
  c.add_option("--image", flags->images, "Image file or URL; repeatable").allow_extra_args(false);
  c.add_option("--video", flags->videos, "Video file or URL; repeatable").allow_extra_args(false);
  add_media_defaults(c, flags->media);
  c.add_option("--prompt", flags->prompt, "The user's text").required();
  c.add_option("--system", flags->system, "System prompt, instead of the model family's default");
  c.add_flag("--raw", flags->raw, "Send the prompt as plain text, without the chat format");
  c.add_option("--max-tokens", flags->max_tokens, "Highest number of tokens in the answer")
      .capture_default_str();
  c.add_option("--temperature", flags->temperature, "Sampling temperature; 0: greedy")
      .capture_default_str();
  c.add_option("--top-p", flags->sampling.top_p,
               "Sample from the smallest set of tokens with this total probability");
  c.add_option("--top-k", flags->sampling.top_k, "Sample from the k most likely tokens");
  c.add_option("--seed", flags->sampling.seed, "Random seed of the sampling");
  c.add_option("--stop", flags->sampling.stop, "Text that ends the answer; repeatable")
      .allow_extra_args(false);
  add_answer_form_flags(c, flags->form);
  c.add_flag("--ignore-eos", flags->sampling.ignore_eos,
             "Do not stop at the end-of-sequence token");
  c.add_option("--logprobs", flags->sampling.logprobs, "Report this many alternatives per token");
  c.add_option("--max-logprobs", flags->engine.max_logprobs, "Highest allowed value of --logprobs")
      .capture_default_str();
  c.add_flag("--classify", flags->classify, "Answer with the adapter's task head");
  c.add_option("--head", flags->head,
               "Task head to answer with; lm: answer with text even if the adapter has heads");
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] { run = [flags] { return run_generate(*flags); }; });
}

}  // namespace valora::cli
