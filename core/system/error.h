// The one exception type of assay, and its one way onto the terminal.
//
//   throw Error::input("header length 9000000000 exceeds the file's 4096 bytes")
//       .in(path).at(0).remedy("download the file again");
//
//   assay: model.safetensors: byte 0: header length 9000000000 exceeds the file's 4096 bytes; download the
//   file again
//
// Libraries throw; `cli/` catches, once, prints one line on stderr and exits with exit_code().
// A check that says no is not an Error: it is a Finding (core/system/finding.h) and exit code 1.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

enum class ErrorKind {
  usage,     // the command line asks for something that cannot be      -> exit 2
  input,     // a file or argument is malformed, hostile or missing     -> exit 2
  io,        // the system refused: permission, full disk, read error   -> exit 2
  refused,   // the work is possible but would do harm; we decline      -> exit 1
  internal,  // our own fault                                           -> exit 3
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string what) : kind_(kind), what_(std::move(what)) {}

  static Error usage(std::string what) { return {ErrorKind::usage, std::move(what)}; }
  static Error input(std::string what) { return {ErrorKind::input, std::move(what)}; }
  static Error io(std::string what) { return {ErrorKind::io, std::move(what)}; }
  static Error refused(std::string what) { return {ErrorKind::refused, std::move(what)}; }
  static Error internal(std::string what) { return {ErrorKind::internal, std::move(what)}; }
  // "cannot open: Permission denied", from errno as the failed call left it.
  static Error from_errno(std::string_view doing, int error_number);

  // Context; the outer caller may add what the inner one could not know. The innermost value wins.
  Error& in(const std::filesystem::path& file) &;
  Error& tensor(std::string_view name) &;
  Error& at(std::uint64_t byte_offset) &;
  Error& remedy(std::string_view what_to_do) &;
  Error&& in(const std::filesystem::path& file) && { return std::move(in(file)); }
  Error&& tensor(std::string_view name) && { return std::move(tensor(name)); }
  Error&& at(std::uint64_t byte_offset) && { return std::move(at(byte_offset)); }
  Error&& remedy(std::string_view what_to_do) && { return std::move(remedy(what_to_do)); }

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return what_; }  // without context
  const std::string& file() const { return file_; }
  const std::string& tensor() const { return tensor_; }
  const std::string& remedy() const { return remedy_; }
  const std::optional<std::uint64_t>& offset() const { return offset_; }
  int exit_code() const;

  // One line, control characters escaped, without the leading "assay: ".
  std::string line() const;
  const char* what() const noexcept override;

 private:
  ErrorKind kind_;
  std::string what_;
  std::string file_;
  std::string tensor_;
  std::optional<std::uint64_t> offset_;
  std::string remedy_;
  mutable std::string rendered_;
};

// Exit codes of every command (docs/cli.md).
inline constexpr int kExitOk = 0;
inline constexpr int kExitCheckFailed = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitInternal = 3;
inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells expect

}  // namespace assay
