// A recurrent layer's state put together from the parts of one or several ranks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "refimpl/handoff/state_cut.h"

namespace assay {

class StateAssembly {
 public:
  // `number_bytes`: of a number as it lies in memory, and travels.
  StateAssembly(StateCut cut, std::size_t number_bytes);

  // Throws Error::input for a part that is no run of the state's units, and where one that is here already came otherwise. Units
  // that others have are passed over.
  void take(const HandoffPart& part);
  std::optional<std::string> missing() const;  // "channels 8 to 16"; none: all is here

  const StateCut& cut() const { return cut_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void put(std::size_t which, std::size_t place, const HandoffPart& part);

  StateCut cut_;
  std::size_t number_bytes_;
  std::vector<std::byte> bytes_;
  std::vector<bool> here_;  // by unit of cut_.here
};

}  // namespace assay
