// The folder `.OUT.assay-partial` beside OUT, in which everything is written until it is whole.
//
// One run at a time writes in it, or the ranks of one (a lock on the folder itself, which goes with the process). It stays where
// another try can go on (killed, disk full), and goes where none can: the input is at fault.
//
// The end of a run is several steps, each of which may be its last. So that --resume knows which, the journal
// leaves the folder for `.OUT.assay-published` beside OUT when everything is whole, and goes after all else:
//
//   OUT is a folder                             OUT is a file, or several
//   the journal becomes the record              each file takes its name
//   the folder takes the name OUT               the journal becomes the record
//   the record goes                             the folder goes, then the record
//
// A record whose files lie in OUT, every byte, means that nothing is left to do; any other becomes the journal
// again.
#pragma once

#include <chrono>

#include "core/system/error.h"
#include "core/system/file.h"

namespace assay {

fs::path partial_folder(const fs::path& out);
fs::path publication_record(const fs::path& out);
// The folder that OUT lies in, and its name there.
fs::path parent_of_output(const fs::path& out);
std::string name_of_output(const fs::path& out);

class PartialFolder {
 public:
  enum class Begin : std::uint8_t {
    empty,  // there is none
    anew,   // what an earlier run left is removed
    resume,
    share  // by many ranks at once, each of which keeps others than ranks out
  };
  // A rank waits for another that has the folder to itself: it looks so often, so far apart.
  static constexpr int kLooks = 200;
  static constexpr std::chrono::milliseconds kBetweenLooks{25};

  // Throws Error::refused where another run has it.
  PartialFolder(const fs::path& out, Begin how);
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;
  ~PartialFolder();  // an empty one goes

  const fs::path& path() const { return path_; }
  const fs::path& out() const { return out_; }  // absolute
  const fs::path& record() const { return record_; }

  // Of a rank that shares it: false where it cannot have it to itself, for another rank has, or has published it.
  bool take_over();

  // Whether an earlier run left a record and no journal.
  bool is_sealed() const;
  void seal();    // the journal becomes the record
  void unseal();  // and the journal again
  // Gives it the name OUT, in one step. A folder that lies there is put out of the way and then removed where
  // that was asked for (`anew`), and otherwise refused: another run has been faster.
  void publish();
  void remove();  // the record, too; and what lay under the name OUT before
  // What a rank that failed is to say: others go on in it.
  Error after_share(const Error& failure) const;
  // What a failed run is to say: removes the folder where the input is at fault, else names it and how to go
  // on.
  Error after(const Error& failure);

 private:
  void tidy();

  fs::path out_, path_, record_, old_;
  bool anew_, gone_ = false;
  int descriptor_ = -1;
};

}  // namespace assay
