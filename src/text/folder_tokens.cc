#include "text/folder_tokens.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "text/json_fields.h"

namespace valora::text {
namespace {

// In the order in which transformers adds them.
constexpr std::array<const char*, 7> kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                               "pad_token", "cls_token", "mask_token"};
constexpr char kAdditional[] = "additional_special_tokens";
constexpr char kExtra[] = "extra_special_tokens";

Result<Json> read_object(const InputFolder& folder, const std::string& name) {
  if (!folder.has(name)) return Json(Json::object());
  VALORA_TRY(json, read_json(folder, name));
  if (!json.is_object()) return refuse(folder.path_of(name), "must be an object");
  return json;
}

// Reads an object with the fields of AddedToken, and its defaults for missing ones.
Result<AddedToken> read_listed(const Json& json, const std::string& where, bool special) {
  AddedToken token;
  token.id = -1;
  VALORA_TRY(content, field<std::string>(json, where, "content"));
  VALORA_TRY(own_special, field_or<bool>(json, where, "special", special));
  VALORA_TRY(normalized, field_or<bool>(json, where, "normalized", !(special || own_special)));
  VALORA_TRY(single_word, field_or<bool>(json, where, "single_word", false));
  VALORA_TRY(lstrip, field_or<bool>(json, where, "lstrip", false));
  VALORA_TRY(rstrip, field_or<bool>(json, where, "rstrip", false));
  token.content = std::move(content);
  token.special = special || own_special;
  token.normalized = normalized;
  token.single_word = single_word;
  token.lstrip = lstrip;
  token.rstrip = rstrip;
  return token;
}

AddedToken special_text(const std::string& content) {
  return {.id = -1, .content = content, .special = true};
}

// Collects the tokens of a folder's files.
class FolderTokens {
 public:
  explicit FolderTokens(const InputFolder& folder) : folder_(folder), dir_(folder.path()) {}

  Status read(const Json& tokenizer) {
    VALORA_TRY(config, read_object(folder_, "tokenizer_config.json"));
    config_ = std::move(config);
    VALORA_CHECK(read_tokenizer(tokenizer));
    if (config_.contains("added_tokens_decoder")) return read_decoder();
    VALORA_CHECK(read_map());
    VALORA_CHECK(collect_special());
    return read_older();
  }

  Result<std::vector<AddedToken>> result() {
    VALORA_CHECK(collect_special());
    std::set<std::string> known;
    for (const auto& [content, token] : in_tokenizer_) known.insert(content);
    std::vector<AddedToken> added;
    const auto is_there = [&](const AddedToken& token) {
      const auto it = in_tokenizer_.find(token.content);
      return it != in_tokenizer_.end() && same_token(it->second, token);
    };
    for (auto& [id, token] : by_id_) {
      if (is_there(token)) continue;
      token.special = token.special || special_.contains(token.content);
      known.insert(token.content);
      added.push_back(token);
    }
    for (const auto& [token, is_text] : specials_) {
      if (is_text && known.contains(token.content)) continue;
      AddedToken special = token;
      special.special = true;
      const auto same = [&](const AddedToken& other) { return same_token(other, special); };
      if (!is_there(special) && std::ranges::none_of(added, same))
        added.push_back(std::move(special));
    }
    return added;
  }

 private:
  struct Special {
    AddedToken token;
    bool is_text;  // given as text only: takes the flags of a known token with this text
  };

  Status read_tokenizer(const Json& tokenizer) {
    const auto it = tokenizer.is_object() ? tokenizer.find("added_tokens") : tokenizer.end();
    if (it == tokenizer.end() || !it->is_array()) return {};
    for (const Json& json : *it) {
      VALORA_TRY(token, read_listed(json, dir_ + "/tokenizer.json: added_tokens", false));
      VALORA_TRY(id, field_or<int32_t>(json, "added_tokens", "id", -1));
      token.id = id;
      in_tokenizer_.insert_or_assign(token.content, std::move(token));
    }
    return {};
  }

  Status read_decoder() {
    const std::string where = dir_ + "/tokenizer_config.json: added_tokens_decoder";
    const Json& decoder = config_["added_tokens_decoder"];
    if (!decoder.is_object()) return refuse(where, "must be an object");
    for (const auto& [key, json] : decoder.items()) {
      VALORA_TRY(token, read_listed(json, where, false));
      const bool number = !key.empty() && key.size() < 10 &&
                          key.find_first_not_of("0123456789") == std::string::npos;
      if (!number) return refuse(where, in_quotes(key) + " is not a token id");
      token.id = std::stoi(key);
      objects_.insert_or_assign(token.content, token);
      by_id_.insert_or_assign(token.id, std::move(token));
    }
    return {};
  }

  // special_tokens_map.json takes precedence over tokenizer_config.json, but their lists are
  // joined.
  Status read_map() {
    VALORA_TRY(map, read_object(folder_, "special_tokens_map.json"));
    for (auto& [key, value] : map.items()) {
      if (key == kAdditional && value.is_array() && config_.contains(key) &&
          config_[key].is_array())
        for (const Json& own : config_[key]) value.push_back(own);
      config_[key] = value;
    }
    return {};
  }

  Status read_older() {
    const std::string path = dir_ + "/added_tokens.json";
    VALORA_TRY(tokens, read_object(folder_, "added_tokens.json"));
    for (const auto& [content, id] : tokens.items()) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() > kMaxTokenId)
        return refuse(path, "the id of " + in_quotes(content) + " is out of range");
      const bool special = special_.contains(content);
      AddedToken token{.content = content, .normalized = !special, .special = special};
      token.id = id.get<int32_t>();
      by_id_.insert_or_assign(token.id, std::move(token));
    }
    for (const auto& [content, token] : in_tokenizer_) {
      objects_.insert_or_assign(content, token);
      by_id_.insert_or_assign(token.id, token);
    }
    return {};
  }

  // Collects all special tokens, each once.
  Status collect_special() {
    specials_.clear();
    special_.clear();
    for (const char* name : kNames)
      if (config_.contains(name)) VALORA_CHECK(add_special(config_[name], name, true));
    for (const char* list : {kAdditional, kExtra})
      if (config_.contains(list))
        for (const Json& token : config_[list])
          VALORA_CHECK(add_special(token, list, config_[list].is_object()));
    return {};
  }

  // named: text in `json` refers to the token object with that text in another file.
  Status add_special(const Json& json, const char* name, bool named) {
    if (json.is_null() || (json.is_string() && json.get_ref<const std::string&>().empty()))
      return {};
    AddedToken token;
    if (json.is_string()) {
      token = special_text(json.get<std::string>());
    } else {
      VALORA_TRY(object, read_listed(json, dir_ + ": " + name, true));
      token = std::move(object);
    }
    const auto object = named ? objects_.find(token.content) : objects_.end();
    if (object != objects_.end()) token = object->second;
    if (special_.insert(token.content).second)
      specials_.push_back({token, json.is_string() && object == objects_.end()});
    return {};
  }

  const InputFolder& folder_;
  const std::string dir_;
  Json config_;  // tokenizer_config.json, updated from special_tokens_map.json if that applies
  std::map<std::string, AddedToken> in_tokenizer_;  // by content
  std::map<int32_t, AddedToken> by_id_;             // tokens listed in other files
  std::map<std::string, AddedToken> objects_;       // tokens with flags, by text
  std::vector<Special> specials_;
  std::set<std::string> special_;  // contents of `specials_`
};

}  // namespace

Result<std::vector<AddedToken>> read_folder_tokens(const InputFolder& folder,
                                                   const Json& tokenizer) {
  FolderTokens tokens(folder);
  VALORA_CHECK(tokens.read(tokenizer));
  return tokens.result();
}

}  // namespace valora::text
