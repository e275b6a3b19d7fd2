// The forward rules, one for each file that has one; models.cpp lists them.
#pragma once

#include "refimpl/models/model.h"

namespace assay {

extern const ModelRule kLlamaRule;
extern const ModelRule kQwenRule;

}  // namespace assay
