#include "kernels/harness/measure_json.h"

#include <fmt/format.h>

#include <cmath>

#include "core/system/json.h"

namespace assay {

Json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}

Json to_json(const ErrorMeasure& m) {
  Json ulps = Json::object();
  for (std::size_t i = 0; i < kUlpClasses; ++i) ulps[std::string(ulp_class_name(i))] = m.ulps[i];
  return {{"elements", m.elements},
          {"worst", m.worst},
          {"over_budget", m.over_budget},
          {"pattern_faults", m.pattern_faults},
          {"max_abs", json_number(m.max_abs)},
          {"max_rel", json_number(m.max_rel)},
          {"nmse", json_number(m.nmse)},
          {"one_minus_cosine", json_number(m.one_minus_cosine)},
          {"ulps", std::move(ulps)}};
}

}  // namespace assay
