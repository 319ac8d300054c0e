#include "serving/prompts/media_text.h"

#include <algorithm>

#include "serving/prompts/plain_text.h"

namespace valora::serving {
namespace {

// Appends tokens; each placeholder is replaced by an equal number of rows.
Status append_rows(const MediaText& medium, std::span<const int32_t> pattern,
                   std::vector<int32_t>& tokens, std::vector<models::VisualSpan>& visual) {
  const auto places = static_cast<int>(std::ranges::count(pattern, medium.placeholder));
  const int expected = std::max(medium.input->grid_t, medium.input->token_rows);
  if (places != expected || medium.input->tokens % places != 0)
    return internal("the placeholders of an image or video do not match its grids");
  const int rows = medium.input->tokens / places;
  int first = 0;
  for (const int32_t token : pattern) {
    if (token != medium.placeholder) {
      tokens.push_back(token);
      continue;
    }
    visual.push_back({static_cast<int>(tokens.size()), rows, medium.input, first});
    tokens.insert(tokens.end(), static_cast<size_t>(rows), medium.placeholder);
    first += rows;
  }
  return {};
}

}  // namespace

Status append_image(const MediaText& image, const text::Tokenizer& tokenizer,
                    std::vector<int32_t>& tokens, std::vector<models::VisualSpan>& visual) {
  return append_rows(image, tokenizer.encode(image.text, /*add_special_tokens=*/false), tokens,
                     visual);
}

Status append_video_text(const MediaText& video, std::span<const int32_t> behind,
                         const text::Tokenizer& tokenizer, const text::ContentMarks& content_marks,
                         std::vector<int32_t>& tokens, std::vector<models::VisualSpan>& visual) {
  std::string before = take_last_text(tokenizer, tokens), after;
  for (const int32_t token : behind) after += tokenizer.token_bytes(token);
  VALORA_TRY(plain, marked_plain({std::move(before), std::move(after)}, content_marks));
  const std::vector<int32_t> pattern = tokenizer.encode(
      plain.texts[0] + video.text + plain.texts[1], /*add_special_tokens=*/false, plain.mark);
  return append_rows(video, pattern, tokens, visual);
}

Status check_media_text(const models::Family& family, const text::Tokenizer& tokenizer,
                        int32_t placeholder) {
  const std::string text = family.media_text({});
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
      std::vector<int32_t> ours = around(*tokenizer.token_text(placeholder));
      std::ranges::replace(ours, placeholder, border);
      if (ours != around(name))
        return refuse("the text around " + name + " is tokenized differently from that around " +
                      family.image_placeholder + ", which is not supported");
    }
  }
  return {};
}

}  // namespace valora::serving
