#include "refimpl/models/step_limits.h"

#include <nlohmann/json.hpp>

#include "core/system/error.h"

namespace assay {

void read_step_limits(const ModelConfig& config, RecurrentForm& form) {
  const auto found = config.text().find("time_step_limit");
  if (found == config.text().end() || found->is_null()) return;
  const auto number = [&](std::size_t i) {
    const ParsedJson& value = (*found)[i];
    if (!value.is_number() || !(value.get<double>() >= 0))
      throw Error::input("time_step_limit is not two numbers from 0 on").in(config.source());
    return value.get<double>();
  };
  if (!found->is_array() || found->size() != 2)
    throw Error::input("time_step_limit is not a list of two").in(config.source());
  form.least_step = number(0);
  form.most_step = number(1);
  if (form.least_step > form.most_step)
    throw Error::input("time_step_limit ends before it begins").in(config.source());
}

}  // namespace assay
