#include "core/system/error.h"

#include <fmt/format.h>

#include <system_error>

#include "core/system/text.h"

namespace assay {

Error Error::from_errno(std::string_view doing, int error_number) {
  return Error::io(fmt::format("cannot {}: {}", doing, std::generic_category().message(error_number)));
}

Error& Error::in(const std::filesystem::path& file) & {
  if (file_.empty()) file_ = file.string();
  return *this;
}

Error& Error::tensor(std::string_view name) & {
  if (tensor_.empty()) tensor_ = name;
  return *this;
}

Error& Error::at(std::uint64_t byte_offset) & {
  if (!offset_) offset_ = byte_offset;
  return *this;
}

Error& Error::remedy(std::string_view what_to_do) & {
  if (remedy_.empty()) remedy_ = what_to_do;
  return *this;
}

int Error::exit_code() const {
  switch (kind_) {
    case ErrorKind::refused: return kExitCheckFailed;
    case ErrorKind::internal: return kExitInternal;
    default: return kExitBadInput;
  }
}

std::string Error::line() const {
  std::string text;
  if (!file_.empty()) text += escape_for_terminal(file_) + ": ";
  if (!tensor_.empty()) text += "tensor " + escape_for_terminal(tensor_) + ": ";
  if (offset_) text += fmt::format("byte {}: ", *offset_);
  text += escape_for_terminal(what_);
  if (!remedy_.empty()) text += "; " + escape_for_terminal(remedy_);
  return text;
}

const char* Error::what() const noexcept {
  try {
    rendered_ = line();
    return rendered_.c_str();
  } catch (...) {
    return what_.c_str();
  }
}

}  // namespace assay
