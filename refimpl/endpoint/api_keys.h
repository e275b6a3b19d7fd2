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
  // Throws Error::usage for an address that others than this machine reach, where there are no keys.
  // `said`: the address as its user gave it.
  void require_for(const std::string& host, const std::string& said,
                   const std::string& option = "--api-key-file") const;
  // Takes as long for any header of its length: digests are compared, all of them, whole.
  bool admits(std::string_view authorization) const;

 private:
  std::vector<std::string> digests_;  // SHA-256
};

// "Bearer KEY": what admits() reads. The first key of a file, for whoever asks.
std::string first_authorization(const std::string& file);

}  // namespace assay
