#include "verify/signature/checkpoint.h"

#include <algorithm>

#include "core/system/error.h"
#include "core/system/text.h"
#include "verify/signature/encoding.h"

namespace assay::signature {
namespace {

constexpr std::size_t kKeyHint = 4;
constexpr std::size_t kRootBytes = 32;
constexpr std::size_t kMostSignatures = 100;

Error not_a_checkpoint() {
  return Error::refused("the transparency log's checkpoint is malformed");
}

// The next line of `rest`, which has to end in a line feed.
std::string_view take_line(std::string_view& rest) {
  const auto end = rest.find('\n');
  if (end == rest.npos) throw not_a_checkpoint();
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return line;
}

// "— NAME BASE64": an em dash, no blank but these two.
NoteSignature signature_in(std::string_view line) {
  constexpr std::string_view kDash = "\u2014 ";
  if (!line.starts_with(kDash)) throw not_a_checkpoint();
  line.remove_prefix(kDash.size());
  const auto blank = line.find(' ');
  const auto bytes = blank == line.npos ? std::nullopt : decode_base64(line.substr(blank + 1));
  if (!bytes || blank == 0 || bytes->size() <= kKeyHint) throw not_a_checkpoint();
  return {std::string(line.substr(0, blank)), bytes->substr(0, kKeyHint), bytes->substr(kKeyHint)};
}

std::string node_hash(std::string_view left, std::string_view right) {
  return sha256(std::string(1, '\x01') + std::string(left) + std::string(right));
}

// Rekor 1 adds the tree's number to its name: "rekor.sigstore.dev - 1193050959916656506".
bool is_named(const std::string& origin, const std::string& name) {
  return origin == name || origin.starts_with(name + " - ");
}

}  // namespace

Checkpoint parse_checkpoint(std::string_view note) {
  const auto split = note.find("\n\n");
  if (split == note.npos || !is_valid_utf8(note)) throw not_a_checkpoint();
  Checkpoint out;
  out.text = std::string(note.substr(0, split + 1));
  std::string_view lines = out.text;
  out.origin = std::string(take_line(lines));
  const auto size = parse_u64(take_line(lines));
  const auto root = decode_base64(take_line(lines));
  if (out.origin.empty() || !size || *size > INT64_MAX || !root || root->size() != kRootBytes)
    throw not_a_checkpoint();
  out.size = static_cast<std::int64_t>(*size);
  out.root = *root;
  for (std::string_view rest = note.substr(split + 2); !rest.empty();) {
    out.signatures.push_back(signature_in(take_line(rest)));
    if (out.signatures.size() > kMostSignatures) throw not_a_checkpoint();
  }
  if (out.signatures.empty()) throw not_a_checkpoint();
  return out;
}

void check_checkpoint(const Checkpoint& checkpoint, const Log& log) {
  const std::string hint = log.checkpoint_id.substr(0, kKeyHint);
  for (const NoteSignature& one : checkpoint.signatures) {
    if (one.key_hint != hint || !is_named(checkpoint.origin, one.name)) continue;
    if (log.key.verifies(checkpoint.text, one.signature)) return;
    throw Error::refused("the transparency log has not signed its checkpoint");
  }
  throw Error::refused("the transparency log's checkpoint has no signature of that log");
}

std::string leaf_hash(std::string_view entry) {
  return sha256(std::string(1, '\0') + std::string(entry));
}

// RFC 9162 §2.1.3.2.
std::string root_from_proof(std::int64_t index, std::int64_t size, std::string hash,
                            const std::vector<std::string>& hashes) {
  if (index < 0 || index >= size) return {};
  auto at = static_cast<std::uint64_t>(index), last = static_cast<std::uint64_t>(size) - 1;
  for (const std::string& sibling : hashes) {
    if (last == 0) return {};
    if ((at & 1) != 0 || at == last) {
      hash = node_hash(sibling, hash);
      while ((at & 1) == 0 && at != 0) at >>= 1, last >>= 1;
    } else {
      hash = node_hash(hash, sibling);
    }
    at >>= 1;
    last >>= 1;
  }
  return last == 0 ? hash : std::string();
}

}  // namespace assay::signature
