// Work that cannot ask interrupted().
#pragma once

namespace assay {

// While one exists, a signal ends the process at once: for calls that may take for ever (a regular expression
// on a hostile name) while nothing is at stake yet.
class DieWhenInterrupted {
 public:
  DieWhenInterrupted();
  DieWhenInterrupted(const DieWhenInterrupted&) = delete;
  DieWhenInterrupted& operator=(const DieWhenInterrupted&) = delete;
  ~DieWhenInterrupted();
};

}  // namespace assay
