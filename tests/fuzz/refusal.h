// What is well formed and not believed is refused: as good an answer as that it is malformed.
#pragma once

#include "core/system/error.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

template <typename Function>
auto believed(Function function) {
  return accepted([&] {
    try {
      return function();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::refused) throw;
      throw Error::input(error.message());
    }
  });
}

}  // namespace assay::fuzz
