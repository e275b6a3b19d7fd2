// What somebody says of a file beside the digest that vouches for it, or in place of one: a weak digest, digests of its
// tensors, what a layer holds when it is unpacked.
//
// A claim that does not hold is a fault. One that holds proves less than a digest does: the file is vouched for by
// nobody all the same, and the report says what was compared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace assay {

enum class Packing : std::uint8_t { none, gzip, zstd };

struct FileClaim {
  enum class Of : std::uint8_t {
    file,         // its bytes
    tensor,       // the stored bytes of one tensor
    all_tensors,  // those of all tensors, one after the other
    buffer,       // what follows the header of a safetensors file
    contents,     // a layer, unpacked; of a tar archive also which names it would write to
  };
  Of of = Of::file;
  std::string algorithm;            // "sha256", "md5", "xxh64", "uuid", …: one that ClaimDigest knows
  std::string digest;               // lower-case hexadecimal digits; none: nothing is compared
  std::string tensor;               // Of::tensor
  std::string said_by;              // "bom.json", "the config of v1"
  Packing packing = Packing::none;  // Of::contents
  bool archive = false;             // and whether it is a tar archive
  bool image = false;               // of a container's file system, where links lead anywhere
  friend bool operator==(const FileClaim&, const FileClaim&) = default;
};

using FileClaims = std::vector<FileClaim>;
using FileClaimsByName = std::map<std::string, FileClaims>;  // by the file's name in the expectation

}  // namespace assay
