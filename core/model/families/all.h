// Every family there is: one declaration each, one definition in the file that bears the family's name.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

extern const Family kLlama, kMistral;

}  // namespace assay::families
