// Checksums as Windows prints them, a file at a time:
//
//   SHA256 hash of C:\models\model.safetensors:              certutil -hashfile; older ones part the digits
//   4d7a…2393                                                by blanks
//   CertUtil: -hashfile command completed successfully.
//
//   Algorithm       Hash                    Path             Get-FileHash
//   ---------       ----                    ----
//   SHA256          4D7A…2393               C:\models\model.safetensors
//
//   Algorithm : SHA256                                       Get-FileHash | Format-List
//   Hash      : 4D7A…2393
//   Path      : C:\models\model.safetensors
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

struct WindowsChecksum {
  std::string algorithm, hex;
  std::string name;  // with '/', without a drive: "/models/model.safetensors"
};

// Takes a text line by line.
class WindowsChecksumReader {
 public:
  // Whether the line is part of such an output; `found` is set with the line that completes a checksum.
  bool take(std::string_view line, std::optional<WindowsChecksum>& found);

 private:
  std::optional<WindowsChecksum> open_;  // its digest, or its name, is still to come
};

bool is_hex_digit(char c);

// What PowerShell's '>' writes. Throws Error::input for halves of characters.
std::string utf8_of_utf16(std::string_view bytes, bool big_endian);

}  // namespace assay
