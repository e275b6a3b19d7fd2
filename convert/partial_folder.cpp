#include "convert/partial_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/system/text.h"

namespace assay {
namespace {

void rename_folder(const fs::path& from, const fs::path& to, const fs::path& out) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw Error::from_errno("rename the finished folder into place", errno).in(out);
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

PartialFolder::PartialFolder(const fs::path& out, bool anew)
    : out_(parent_of_output(out) / name_of_output(out)), path_(partial_folder(out)), anew_(anew) {
  fs::create_directories(path_);
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor_ < 0) throw Error::from_errno("open", errno).in(path_);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    descriptor_ = -1;
    if (reason == EWOULDBLOCK)
      throw Error::refused("another conversion is writing here")
          .in(path_)
          .remedy("wait for it, or name another OUT");
    throw Error::from_errno("lock", reason).in(path_);
  }
  if (!anew) return;
  for (const auto& entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
}

PartialFolder::~PartialFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PartialFolder::publish() {
  std::error_code error;
  const bool in_the_way = fs::is_directory(out_, error) && !fs::is_empty(out_, error);
  const fs::path old = path_.parent_path() / fmt::format(".{}.assay-old", out_.filename().string());
  if (in_the_way && !anew_) throw Error::refused("exists already").in(out_).remedy("name a new folder");
  if (in_the_way) rename_folder(out_, old, out_);
  rename_folder(path_, out_, out_);
  if (in_the_way) fs::remove_all(old);
}

void PartialFolder::remove() {
  fs::remove_all(path_);
}

Error PartialFolder::after(const Error& failure) {
  std::string remedy = failure.remedy();
  if (is_the_inputs(failure)) {
    std::error_code error;
    fs::remove_all(path_, error);
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
