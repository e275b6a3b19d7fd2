// A set of kernels by name, as `--kernels` takes it. The reference is one; a program adds those it has.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

struct KernelSet {
  std::string name;    // "reference", "cpu", "cuda"
  bool exact = false;  // rows do not depend on their neighbours, nor sums on where a prompt is cut
  std::function<std::unique_ptr<Ops>(const Arithmetic&, int jobs)> make;
};
using KernelSets = std::vector<KernelSet>;

KernelSet reference_kernels();
// Throws Error::usage, naming the sets there are.
const KernelSet& find_kernels(const KernelSets& sets, const std::string& name);

}  // namespace assay
