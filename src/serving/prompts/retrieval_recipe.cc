#include "serving/prompts/retrieval_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/json/json.h"

namespace valora::serving {
namespace {

using Pooling = EmbeddingRecipe::Pooling;

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxPrompts = 64;

Error in_file(const InputFolder& folder, const std::string& file, const std::string& what) {
  return unprocessable(folder.path_of(file) + ": " + what);
}

// null if there is no such file.
Result<Json> read_optional(const InputFolder& folder, const std::string& file) {
  if (!folder.has(file)) return Json();
  VALORA_TRY(text, folder.text(file, kMaxBytes));
  return parse_json(text, folder.path_of(file));
}

// A module's folder is one of this folder's own.
Result<Json> read_module_config(const FolderPath& parent, const std::string& name) {
  if (name.empty() || name == ".." || name.find('/') != std::string::npos)
    return unprocessable(parent.path + "/modules.json: \"" + name + "\" is not a folder in it");
  VALORA_TRY(folder, InputFolder::open({parent.path + "/" + name, parent.root}));
  VALORA_TRY(config, read_optional(folder, "config.json"));
  if (!config.is_object()) return in_file(folder, "config.json", "is missing or not an object");
  return config;
}

// Newer files name one mode, older ones have a flag per mode.
std::string pooling_mode(const Json& config) {
  if (const auto mode = config.find("pooling_mode"); mode != config.end() && mode->is_string())
    return mode->get<std::string>();
  std::string modes;
  for (const auto& [key, on] : config.items())
    if (key.starts_with("pooling_mode_") && on == true)
      modes += (modes.empty() ? "" : "+") + key.substr(std::string_view("pooling_mode_").size());
  return modes;
}

void read_pooling(const Json& config, EmbeddingRecipe& recipe) {
  recipe.described = true;
  const std::string mode = pooling_mode(config);
  const bool mean = mode == "mean" || mode == "mean_tokens";
  if (mean)
    recipe.pooling = Pooling::kMean;
  else if (mode != "lasttoken")
    recipe.refusal = "it pools states by \"" + mode + "\"; lasttoken and mean are supported";
  if (mean && config.value("include_prompt", Json(true)) == false)
    recipe.refusal = "its mean leaves out the prompt (\"include_prompt\")";
}

Status read_logit_score(const FolderPath& folder, const Json& config, int32_t vocab,
                        std::optional<JudgeRecipe>& judge) {
  JudgeRecipe recipe{.described = true};
  for (const auto& [key, id] :
       {std::pair{"true_token_id", &recipe.yes}, std::pair{"false_token_id", &recipe.no}}) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_number_integer() || *found < 0 || *found >= vocab)
      return unprocessable(fmt::format(
          "{}: the \"{}\" of its LogitScore module must be the id of a token; scores of one token "
          "alone are not supported",
          folder.path, key));
    *id = found->get<int32_t>();
  }
  judge = recipe;
  return {};
}

std::string_view class_of(std::string_view type) { return type.substr(type.rfind('.') + 1); }

Status read_modules(const FolderPath& path, const InputFolder& folder, int32_t vocab,
                    RetrievalCard& card) {
  VALORA_TRY(modules, read_optional(folder, "modules.json"));
  if (modules.is_null()) return {};
  if (!modules.is_array()) return in_file(folder, "modules.json", "must be a list");
  for (const Json& module : modules) {
    if (!module.is_object() || !module.contains("type") || !module["type"].is_string())
      return in_file(folder, "modules.json", "a module needs a \"type\"");
    const std::string type = module["type"];
    const std::string name = module.value("path", "");
    const std::string_view kind = class_of(type);
    if (kind == "Pooling") {
      VALORA_TRY(config, read_module_config(path, name));
      read_pooling(config, card.embedding);
    } else if (kind == "LogitScore") {
      VALORA_TRY(config, read_module_config(path, name));
      VALORA_CHECK(read_logit_score(path, config, vocab, card.judge));
    } else if (kind != "Transformer" && kind != "Normalize") {
      card.embedding.refusal = "its embeddings pass through a module of type " + type;
    }
  }
  return {};
}

Status read_prompts(const InputFolder& folder, RetrievalCard& card) {
  constexpr const char* kFile = "config_sentence_transformers.json";
  VALORA_TRY(config, read_optional(folder, kFile));
  if (config.is_null()) return {};
  if (!config.is_object()) return in_file(folder, kFile, "must be an object");
  EmbeddingRecipe& recipe = card.embedding;
  if (const auto prompts = config.find("prompts"); prompts != config.end() && !prompts->is_null()) {
    if (!prompts->is_object() || prompts->size() > kMaxPrompts)
      return in_file(folder, kFile, "\"prompts\" must be an object of texts");
    for (const auto& [name, text] : prompts->items()) {
      if (!text.is_string())
        return in_file(folder, kFile, "\"prompts\" must be an object of texts");
      recipe.prompts.emplace_back(name, text.get<std::string>());
    }
  }
  const auto chosen = config.find("default_prompt_name");
  if (chosen == config.end() || chosen->is_null()) return {};
  const auto known = [&](const auto& prompt) { return *chosen == prompt.first; };
  if (std::ranges::none_of(recipe.prompts, known))
    return in_file(folder, kFile, "\"default_prompt_name\" is not among the prompts");
  recipe.default_prompt = chosen->get<std::string>();
  if (card.judge) card.judge->instruction = std::ranges::find_if(recipe.prompts, known)->second;
  return {};
}

Status read_sizes(const InputFolder& folder, int64_t size, EmbeddingRecipe& recipe) {
  VALORA_TRY(config, read_optional(folder, "config.json"));
  if (!config.is_object()) return {};
  recipe.any_size = config.value("is_matryoshka", Json(false)) == true;
  const auto sizes = config.find("matryoshka_dimensions");
  if (sizes == config.end() || sizes->is_null()) return {};
  if (!sizes->is_array())
    return in_file(folder, "config.json", "\"matryoshka_dimensions\" must be a list");
  for (const Json& one : *sizes) {
    if (!one.is_number_integer() || one < 1 || one > size)
      return in_file(folder, "config.json",
                     fmt::format("\"matryoshka_dimensions\" must be from 1 to {}", size));
    recipe.sizes.push_back(one.get<int64_t>());
  }
  std::ranges::sort(recipe.sizes);
  recipe.any_size = false;
  return {};
}

std::optional<JudgeRecipe> judge_of(const text::Tokenizer& tokenizer) {
  const auto one = [&](const char* text) {
    const std::vector<int32_t> ids = tokenizer.encode(text, /*add_special_tokens=*/false);
    return ids.size() == 1 ? ids[0] : -1;
  };
  JudgeRecipe judge{.yes = one("yes"), .no = one("no")};
  return judge.yes < 0 || judge.no < 0 ? std::nullopt : std::optional(judge);
}

bool names_role(std::string_view source, const char* role) {
  return source.find(fmt::format("\"{}\"", role)) != source.npos ||
         source.find(fmt::format("'{}'", role)) != source.npos;
}

// The template of pairs: an additional one of the folder, else the model's own if it knows the
// roles.
Status read_pair_template(const FolderPath& path, const InputFolder& folder,
                          const TemplateInUse& own, JudgeRecipe& judge) {
  constexpr const char *kFolder = "additional_chat_templates", *kFile = "reranker.jinja";
  if (!own.given && folder.has(kFolder)) {
    VALORA_TRY(more, InputFolder::open({path.path + "/" + kFolder, path.root}));
    if (more.has(kFile)) {
      VALORA_TRY(text, more.text(kFile, kMaxBytes));
      judge.chat_template = std::move(text);
      judge.own_roles = true;
      return {};
    }
  }
  judge.own_roles = names_role(own.text, "query") && names_role(own.text, "document");
  return {};
}

}  // namespace

Result<RetrievalCard> read_retrieval(const FolderPath& folder, const text::Tokenizer& tokenizer,
                                     const TemplateInUse& chat_template, int64_t size) {
  RetrievalCard card;
  const auto opened = InputFolder::open(folder);  // not a folder: a GGUF file
  if (opened.ok()) {
    VALORA_CHECK(read_modules(folder, *opened, tokenizer.vocab_size(), card));
    if (!card.judge) card.judge = judge_of(tokenizer);
    VALORA_CHECK(read_prompts(*opened, card));
    VALORA_CHECK(read_sizes(*opened, size, card.embedding));
    if (card.judge) VALORA_CHECK(read_pair_template(folder, *opened, chat_template, *card.judge));
  } else {
    card.judge = judge_of(tokenizer);
  }
  return card;
}

}  // namespace valora::serving
