// Weights whose codes are multiplied as bytes from 0 up (byte_tile.h): `centre` more than they mean, under one scale for
// each `group`. A group of 0: a type whose codes are no such bytes. Codes of 8 bits are with VNNI alone, which adds up
// products in 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/numeric/element_type.h"

namespace assay::cpu {

struct ByteForm {
  std::int32_t centre = 0;
  std::size_t group = 0;
};

constexpr ByteForm byte_form(ElementType weight) {
  switch (weight) {
    case ElementType::Q4_0:
    case ElementType::Q4_1:
    case ElementType::Q4_K: return {.centre = 8, .group = 32};
    case ElementType::Q5_0:
    case ElementType::Q5_1:
    case ElementType::Q5_K: return {.centre = 16, .group = 32};
    case ElementType::Q6_K: return {.centre = 32, .group = 16};
    case ElementType::Q8_0: return {.centre = 128, .group = 32};
    default: return {};
  }
}

}  // namespace assay::cpu
