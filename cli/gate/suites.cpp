#include "cli/gate/suites.h"

namespace assay {

std::vector<GateSuite> gate_suites() {
  return {{"models", gate_models},
          {"claims", gate_claims},
          {"caches", gate_caches},
          {"conversions", gate_conversions}};
}

}  // namespace assay
