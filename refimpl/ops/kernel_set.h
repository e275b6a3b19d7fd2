// A selection of kernels, as `--kernels` names it. The reference is one; a program offers those it has.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "refimpl/ops/fallbacks.h"
#include "refimpl/ops/interface.h"

namespace assay {

struct KernelSet {
  std::string name;    // "reference", "cpu"
  bool exact = false;  // rows do not depend on their neighbours, nor sums on where a prompt is cut
  std::function<std::unique_ptr<Ops>(const Arithmetic&, int jobs)>
      make;  // Error::usage: there is no such set
  // What the Ops that it makes left to the reference; null where nothing is counted.
  std::shared_ptr<const Fallbacks> fallbacks = nullptr;
};
using KernelSelector = std::function<KernelSet(const std::string& selection)>;

KernelSet reference_kernels();

}  // namespace assay
