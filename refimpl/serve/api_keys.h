// Who may ask: keys of a file, one a line, given as `Authorization: Bearer KEY`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

class ApiKeys {
 public:
  ApiKeys() = default;  // nobody is asked
  // Throws Error::input where the file holds no key, or one that is no printable text of at least 8 characters.
  static ApiKeys read(const std::string& file);
  bool wanted() const { return !digests_.empty(); }
  // Takes as long for any header of its length: digests are compared, all of them, whole.
  bool admits(std::string_view authorization) const;

 private:
  std::vector<std::string> digests_;  // SHA-256
};

}  // namespace assay
