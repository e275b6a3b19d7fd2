// What a selection of kernels left to the reference: calls that none of the kernels chosen for their
// operation takes. An operation for which none was chosen is not counted; nobody expects it elsewhere.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "core/system/report.h"

namespace assay {

// Operations of several ranks count in one of these, each in a thread of its own.
class Fallbacks {
 public:
  struct Op {
    std::size_t calls = 0, by_reference = 0;
    std::set<std::string> forms;  // of the weights in by_reference, "MXFP4"
  };
  void count(std::string_view op);
  void count_by_reference(std::string_view op, std::string_view form);  // "": it has no weight
  std::map<std::string, Op> ops() const;                                // by name, "linear"

  // "no chosen kernel takes, and the reference computed: linear (12 of 340 calls; MXFP4)"; empty: none.
  std::string line() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Op> ops_;
};
// [{op, calls, by_reference, forms[]}] of those that the reference had a part in.
Json to_json(const Fallbacks& fallbacks);

}  // namespace assay
