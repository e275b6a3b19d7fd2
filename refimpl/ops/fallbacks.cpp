#include "refimpl/ops/fallbacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/system/json.h"

namespace assay {

void Fallbacks::count(std::string_view op) {
  const std::lock_guard lock(mutex_);
  ++ops_[std::string(op)].calls;
}

void Fallbacks::count_by_reference(std::string_view op, std::string_view form) {
  const std::lock_guard lock(mutex_);
  Op& counted = ops_[std::string(op)];
  ++counted.calls;
  ++counted.by_reference;
  if (!form.empty()) counted.forms.insert(std::string(form));
}

std::map<std::string, Fallbacks::Op> Fallbacks::ops() const {
  const std::lock_guard lock(mutex_);
  return ops_;
}

std::string Fallbacks::line() const {
  std::string list;
  for (const auto& [name, op] : ops()) {
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
  for (const auto& [name, op] : fallbacks.ops()) {
    if (op.by_reference > 0)
      list.push_back(
          {{"op", name}, {"calls", op.calls}, {"by_reference", op.by_reference}, {"forms", op.forms}});
  }
  return list;
}

}  // namespace assay
