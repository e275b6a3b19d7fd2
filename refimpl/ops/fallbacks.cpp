#include "refimpl/ops/fallbacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/system/json.h"

namespace assay {

std::string Fallbacks::line() const {
  std::string list;
  for (const auto& [name, op] : ops) {
    if (op.by_reference == 0) continue;
    const std::string count = op.by_reference == op.calls
                                  ? fmt::format("all {} calls", op.calls)
                                  : fmt::format("{} of {} calls", op.by_reference, op.calls);
    list += fmt::format("{}{} ({}{}{})", list.empty() ? "" : ", ", name, count, op.forms.empty() ? "" : "; ",
                        fmt::join(op.forms, ", "));
  }
  return list.empty() ? list : "no chosen kernel takes, and the reference computed: " + list;
}

Json to_json(const Fallbacks& fallbacks) {
  Json list = Json::array();
  for (const auto& [name, op] : fallbacks.ops) {
    if (op.by_reference > 0)
      list.push_back(
          {{"op", name}, {"calls", op.calls}, {"by_reference", op.by_reference}, {"forms", op.forms}});
  }
  return list;
}

}  // namespace assay
