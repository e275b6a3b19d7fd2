#include "convert/encoder.h"

#include "core/system/error.h"

namespace assay {

std::optional<std::string> Encoder::refuses(const LogicalTensor&) const {
  return std::nullopt;
}

std::unique_ptr<Encoder> make_encoder(const Spec& spec) {
  switch (spec.family) {
    case Spec::Family::scaled: return make_scaled_encoder(spec);
    case Spec::Family::mxfp4:
    case Spec::Family::mxfp8: return make_mx_encoder(spec);
    case Spec::Family::nvfp4: return make_nvfp4_encoder(spec);
    case Spec::Family::int4: return make_int4_encoder(spec);
  }
  throw Error::internal("no encoder for this target");
}

}  // namespace assay
