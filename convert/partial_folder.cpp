#include "convert/partial_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "convert/journal.h"
#include "core/system/text.h"

namespace assay {
namespace {

void rename_folder(const fs::path& from, const fs::path& to, const fs::path& out) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw Error::from_errno("rename the finished folder into place", errno).in(out);
}

void rename_journal(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw Error::from_errno("rename the journal", errno).in(to);
}

// NaN in a tensor, a shard that is cut off: no other run of the same command would fare better.
bool is_the_inputs(const Error& failure) {
  return failure.kind() == ErrorKind::input ||
         (failure.kind() == ErrorKind::refused && !failure.tensor().empty());
}

}  // namespace

fs::path parent_of_output(const fs::path& out) {
  const fs::path absolute = fs::absolute(out).lexically_normal();
  return absolute.has_filename() ? absolute.parent_path() : absolute.parent_path().parent_path();
}

std::string name_of_output(const fs::path& out) {
  const fs::path absolute = fs::absolute(out).lexically_normal();
  return (absolute.has_filename() ? absolute : absolute.parent_path()).filename().string();
}

fs::path partial_folder(const fs::path& out) {
  return parent_of_output(out) / fmt::format(".{}.assay-partial", name_of_output(out));
}

fs::path publication_record(const fs::path& out) {
  return parent_of_output(out) / fmt::format(".{}.assay-published", name_of_output(out));
}

PartialFolder::PartialFolder(const fs::path& out, Begin how)
    : out_(parent_of_output(out) / name_of_output(out)),
      path_(partial_folder(out)),
      record_(publication_record(out)),
      old_(path_.parent_path() / fmt::format(".{}.assay-old", name_of_output(out))),
      anew_(how == Begin::anew) {
  fs::create_directories(path_);
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor_ < 0) throw Error::from_errno("open", errno).in(path_);
  if (::flock(descriptor_, (how == Begin::share ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    descriptor_ = -1;
    if (reason == EWOULDBLOCK)
      throw Error::refused("another conversion is writing here")
          .in(path_)
          .remedy("wait for it, or name another OUT");
    throw Error::from_errno("lock", reason).in(path_);
  }
  if (how == Begin::empty || how == Begin::anew) fs::remove(record_);
  if (!anew_) return;
  for (const auto& entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
}

PartialFolder::~PartialFolder() {
  if (!gone_) ::rmdir(path_.c_str());
  ::close(descriptor_);
}

// The lock is given up meanwhile, so that of several ranks that try one succeeds.
bool PartialFolder::take_over() {
  for (int i = 0; i < kLooks; ++i) {
    struct stat held {
    }, there{};
    if (::fstat(descriptor_, &held) != 0 || ::lstat(path_.c_str(), &there) != 0) return false;
    if (held.st_ino != there.st_ino || held.st_dev != there.st_dev) return false;  // it has its final name
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) {
      if (::lstat(path_.c_str(), &there) == 0 && held.st_ino == there.st_ino) return true;
      return false;
    }
    if (errno != EWOULDBLOCK) throw Error::from_errno("lock", errno).in(path_);
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return false;
}

Error PartialFolder::after_share(const Error& failure) const {
  Error said(failure);
  return said.remedy(
      fmt::format("{}{}what the ranks have done lies in {}: the same command goes on from there",
                  failure.remedy(), failure.remedy().empty() ? "" : "; ", path_.string()));
}

bool PartialFolder::is_sealed() const {
  std::error_code ignored;
  return fs::is_regular_file(record_, ignored) && !fs::exists(path_ / Journal::kName, ignored);
}

void PartialFolder::seal() {
  rename_journal(path_ / Journal::kName, record_);
}

void PartialFolder::unseal() {
  rename_journal(record_, path_ / Journal::kName);
}

void PartialFolder::publish() {
  std::error_code error;
  const bool in_the_way = fs::is_directory(out_, error) && !fs::is_empty(out_, error);
  if (in_the_way && !anew_) throw Error::refused("exists already").in(out_).remedy("name a new folder");
  if (in_the_way) rename_folder(out_, old_, out_);
  rename_folder(path_, out_, out_);
  gone_ = true;
  tidy();
}

void PartialFolder::remove() {
  fs::remove_all(path_);
  gone_ = true;
  tidy();
}

// Of a run that was killed between its two renames, too.
void PartialFolder::tidy() {
  fs::remove_all(old_);
  fs::remove(record_);
}

Error PartialFolder::after(const Error& failure) {
  std::string remedy = failure.remedy();
  if (is_the_inputs(failure)) {
    std::error_code error;
    fs::remove_all(path_, error);
    gone_ = true;
    fs::remove(record_, error);
  } else {
    remedy += fmt::format("{}what is done lies in {}: --resume goes on from there, --overwrite begins anew",
                          remedy.empty() ? "" : "; ", path_.string());
  }
  Error said(failure.kind(), failure.message());
  if (!failure.file().empty()) said.in(failure.file());
  if (!failure.tensor().empty()) said.tensor(failure.tensor());
  if (failure.offset()) said.at(*failure.offset());
  if (!remedy.empty()) said.remedy(remedy);
  return said;
}

}  // namespace assay
