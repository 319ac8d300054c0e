#include "serving/prompts/image_text.h"

#include <algorithm>

namespace valora::serving {

Status append_image(int32_t placeholder, const std::string& text,
                    std::shared_ptr<const media::VisualInput> input,
                    const text::Tokenizer& tokenizer, std::vector<int32_t>& tokens,
                    std::vector<models::VisualSpan>& visual) {
  const std::vector<int32_t> pattern = tokenizer.encode(text, /*add_special_tokens=*/false);
  const auto places = static_cast<int>(std::ranges::count(pattern, placeholder));
  if (places != input->grid_t || input->tokens % places != 0)
    return internal("an image has other placeholders than grids");
  const int rows = input->tokens / places;
  int first = 0;
  for (const int32_t token : pattern) {
    if (token != placeholder) {
      tokens.push_back(token);
      continue;
    }
    visual.push_back({static_cast<int>(tokens.size()), rows, input, first});
    tokens.insert(tokens.end(), static_cast<size_t>(rows), placeholder);
    first += rows;
  }
  return {};
}

Status check_image_text(const models::Family& family, const text::Tokenizer& tokenizer,
                        int32_t placeholder) {
  const std::string text = family.image_text({});
  const std::vector<int32_t> pattern = tokenizer.encode(text, /*add_special_tokens=*/false);
  const auto refuse = [](const std::string& why) {
    return unprocessable("tokenizer.json: " + why, "tokenizer.json");
  };
  if (std::ranges::count(pattern, placeholder) != 1)
    return refuse("the text of an image, " + text + ", has no placeholder token of its own");
  for (const int32_t border : {pattern.front(), pattern.back()}) {
    const std::string name = *tokenizer.token_text(border);
    if (!tokenizer.is_added(border))
      return refuse(text + " must begin and end with an added token, which " + name + " is not");
    for (const char* space : {"", " ", "\n"}) {
      const auto around = [&](const std::string& token) {
        return tokenizer.encode("a" + std::string(space) + token + space + "a",
                                /*add_special_tokens=*/false);
      };
      std::vector<int32_t> ours = around(family.image_placeholder);
      std::ranges::replace(ours, placeholder, border);
      if (ours != around(name))
        return refuse("the text around " + name + " becomes other tokens than around " +
                      family.image_placeholder + ", which is not supported");
    }
  }
  return {};
}

}  // namespace valora::serving
