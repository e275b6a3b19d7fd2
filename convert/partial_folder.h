// The folder `.OUT.assay-partial` beside OUT, in which everything is written until it is whole.
//
// One run at a time writes in it (a lock on the folder itself, which goes with the process). It stays where
// another try can go on (killed, disk full), and goes where none can: the input is at fault.
#pragma once

#include "core/system/error.h"
#include "core/system/file.h"

namespace assay {

fs::path partial_folder(const fs::path& out);
// The folder that OUT lies in, and its name there.
fs::path parent_of_output(const fs::path& out);
std::string name_of_output(const fs::path& out);

class PartialFolder {
 public:
  // `anew`: what an earlier run left in it is removed. Throws Error::refused where another run has it.
  PartialFolder(const fs::path& out, bool anew);
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;
  ~PartialFolder();

  const fs::path& path() const { return path_; }
  // Gives it the name OUT, in one step. A folder that lies there is put out of the way and then removed where
  // that was asked for (`anew`), and otherwise refused: another run has been faster.
  void publish();
  void remove();
  // What a failed run is to say: removes the folder where the input is at fault, else names it and how to go
  // on.
  Error after(const Error& failure);

 private:
  fs::path out_, path_;
  bool anew_;
  int descriptor_ = -1;
};

}  // namespace assay
