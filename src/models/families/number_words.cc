#include "models/families/number_words.h"

#include <array>

namespace valora::models {

std::string number_words(int number) {
  static constexpr std::array kSmall{"zero",    "one",     "two",       "three",    "four",
                                     "five",    "six",     "seven",     "eight",    "nine",
                                     "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                     "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static constexpr std::array kTens{"",      "",      "twenty",  "thirty", "forty",
                                    "fifty", "sixty", "seventy", "eighty", "ninety"};
  const auto under = [](int value) { return static_cast<size_t>(value); };
  if (number < 20) return kSmall[under(number)];
  if (number < 100)
    return std::string(kTens[under(number / 10)]) +
           (number % 10 == 0 ? "" : std::string("-") + kSmall[under(number % 10)]);
  const int unit = number < 1000 ? 100 : 1000, rest = number % unit;
  std::string words = number_words(number / unit) + (unit == 100 ? " hundred" : " thousand");
  if (rest == 0) return words;
  return words + (rest < 100 ? " and " : ", ") + number_words(rest);
}

}  // namespace valora::models
