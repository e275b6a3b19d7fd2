// What a selection of kernels left to the reference: calls that none of the kernels chosen for their
// operation takes. An operation for which none was chosen is not counted; nobody expects it elsewhere.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "core/system/report.h"

namespace assay {

struct Fallbacks {
  struct Op {
    std::size_t calls = 0, by_reference = 0;
    std::set<std::string> forms;  // of the weights in by_reference, "MXFP4"
  };
  std::map<std::string, Op> ops;  // by name, "linear"

  // "no chosen kernel takes, and the reference computed: linear (12 of 340 calls; MXFP4)"; empty: none.
  std::string line() const;
};
// [{op, calls, by_reference, forms[]}] of those that the reference had a part in.
Json to_json(const Fallbacks& fallbacks);

}  // namespace assay
