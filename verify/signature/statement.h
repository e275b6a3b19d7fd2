// What an OMS payload says: an in-toto statement whose predicate lists the files of a model.
//
//   https://model_signing/signature/v1.0   specification 1.0: resources, serialization, one subject
//   https://model_signing/Digests/v0.1     model-signing 0.2.0: the files are the subjects, each by its sha256
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::signature {

enum class FileHash { sha256, blake2b, blake3 };
std::string_view name_of(FileHash hash);

struct SignedFile {
  std::string name;
  std::uint64_t size = 0;            // of a file in shards; of a whole one unknown, 0
  std::vector<std::string> digests;  // one; of shards, theirs in order
};

struct SignedModel {
  std::string name;  // informational: any name will do
  FileHash hash = FileHash::sha256;
  std::uint64_t shard_bytes = 0;  // 0: files are hashed whole
  bool allow_symlinks = false;
  std::vector<std::string> ignore_paths;
  std::vector<SignedFile> files;  // as listed
  bool first_release = false;     // of model-signing 0.2.0
  std::string root;               // SHA-256 over the digests, hex; empty in the first release
};

inline constexpr std::string_view kStatementType = "application/vnd.in-toto+json";

// Throws Error::input, or Error::refused where the statement contradicts itself.
SignedModel parse_statement(std::string_view payload);
// Whether the payload, which nobody has vouched for yet, claims to be of the first release.
bool claims_first_release(std::string_view payload);
// The payload that says so: canonical enough to be read by any verifier. Digests of whole files only.
std::string write_statement(const SignedModel& model);

}  // namespace assay::signature
