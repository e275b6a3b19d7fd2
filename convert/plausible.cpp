#include "convert/plausible.h"

#include <fmt/format.h>

#include "core/system/error.h"

namespace assay {

void check_plausible(const LogicalTensor& source, float amax, const ConvertOptions& options) {
  const float limit = source.form.codes == ElementType::I8 ? 127.0F : 448.0F;
  if (!source.quantized() || !(amax >= limit) || options.allow_large) return;
  throw Error::refused(fmt::format("decodes to values as large as {}: raw codes may have been taken for "
                                   "values, or scales are wrong",
                                   amax))
      .tensor(source.name)
      .remedy("check the scales, or accept the values with --allow-large");
}

}  // namespace assay
