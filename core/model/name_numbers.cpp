#include "core/model/name_numbers.h"

#include "core/system/text.h"

namespace assay {

std::size_t number_begins(std::string_view part) {
  const std::size_t before = part.find_last_not_of("0123456789");
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view digits = part.substr(begin);
  const bool canonical = digits == "0" || !digits.starts_with('0');
  return canonical && parse_u64(digits) ? begin : std::string_view::npos;
}

}  // namespace assay
