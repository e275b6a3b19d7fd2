// Colours of statuses: the same in every comparison.
#pragma once

#include "core/system/report.h"
#include "kernels/harness/measure.h"

namespace assay {

inline Style style_of(CaseStatus status) {
  switch (status) {
    case CaseStatus::passed: return Style::green;
    case CaseStatus::failed: return Style::red;
    case CaseStatus::mistrusted: return Style::yellow;
    case CaseStatus::skipped:
    case CaseStatus::unimplemented: break;
  }
  return Style::dim;
}

}  // namespace assay
