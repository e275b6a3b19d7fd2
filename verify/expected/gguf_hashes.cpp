#include "verify/expected/gguf_hashes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/system/error.h"
#include "core/system/finding_collector.h"
#include "core/system/text.h"
#include "verify/claims/claim_digest.h"
#include "verify/expected/assemble.h"

namespace assay {
namespace {

struct GgufHashLine {
  std::string algorithm, digest;
  std::string file, tensor;  // no tensor: of all
};

std::string_view next_word(std::string_view& line) {
  line = trim(line);
  const auto end = line.find_first_of(" \t");
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == line.npos ? line.size() : end);
  return word;
}

bool names_algorithm(std::string_view word) {
  return word == "sha256" || word == "sha1" || word == "xxh64" || word == "uuid" || word == "xxh3";
}

// "models/x.gguf:blk.0.attn_q.weight": the file is what ends with ".gguf", or else what stands before the last colon.
void split_name(std::string_view name, GgufHashLine& line) {
  constexpr std::string_view kEnd = ".gguf:";
  auto colon = name.rfind(kEnd);
  if (colon != name.npos)
    colon += kEnd.size() - 1;
  else if (!name.ends_with(".gguf"))
    colon = name.rfind(':');
  std::string_view file = name.substr(0, colon);
  if (colon != name.npos) line.tensor = name.substr(colon + 1);
  if (const auto slash = file.find_last_of("/\\"); slash != file.npos) file.remove_prefix(slash + 1);
  line.file = file;
}

// nullopt for what is no such line; no digest where its digits are none.
std::optional<GgufHashLine> parse_line(std::string_view text) {
  GgufHashLine line;
  line.algorithm = next_word(text);
  if (!names_algorithm(line.algorithm)) return std::nullopt;
  for (const char c : next_word(text)) {
    if (line.algorithm == "uuid" && c == '-') continue;
    line.digest += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  split_name(trim(text), line);
  if (line.file.empty()) return std::nullopt;
  const bool hexadecimal = line.digest.find_first_not_of("0123456789abcdef") == line.digest.npos;
  const std::size_t digits = line.algorithm == "xxh3" ? 16 : claim_digits(line.algorithm);
  if (!hexadecimal || line.digest.size() != digits) line.digest.clear();
  return line;
}

template <typename Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (const auto line = trim(text.substr(0, end)); !line.empty() && !line.starts_with('#'))
      if (!take(line)) return;
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

}  // namespace

bool is_gguf_hash_manifest(std::string_view text) {
  bool is_one = false;
  for_each_line(text, [&](std::string_view line) {
    const auto parsed = parse_line(line);
    is_one = parsed && !parsed->digest.empty();
    return false;
  });
  return is_one;
}

Expectation expect_from_gguf_hashes(std::string_view text, const fs::path& source, const fs::path& root) {
  Expectation out;
  out.kind = "gguf-hash manifest";
  out.origin = source.string();
  out.root = root;
  out.ignored = {".git", ".cache"};
  if (lies_in(source, root)) out.ignored.push_back(source.filename().string());
  FindingCollector findings;
  std::size_t unread = 0;
  for_each_line(text, [&](std::string_view written) {
    const auto line = parse_line(written);
    if (!line) {
      findings.add({.severity = Severity::warning,
                    .code = "gguf_hash.line",
                    .message = fmt::format("has a line that is no hash: '{}'", written.substr(0, 80))});
    } else if (line->digest.empty()) {
      findings.add({.code = "gguf_hash.bad_digest",
                    .message = fmt::format("has no {}: its digits are none", line->algorithm),
                    .file = line->file,
                    .tensor = line->tensor});
    } else if (line->algorithm == "xxh3") {
      ++unread;
    } else {
      out.claims[line->file].push_back(
          {.of = line->tensor.empty() ? FileClaim::Of::all_tensors : FileClaim::Of::tensor,
           .algorithm = line->algorithm,
           .digest = line->digest,
           .tensor = line->tensor,
           .said_by = source.filename().string()});
    }
    return true;
  });
  out.findings = findings.take();
  if (unread > 0)
    out.findings.push_back(
        {.severity = Severity::warning,
         .code = "gguf_hash.xxh3",
         .message = fmt::format("{} hashes are XXH3, which is not computed here", unread)});
  std::erase_if(out.claims, [&](const auto& one) { return !accept_name(one.first, out.findings); });
  for (const auto& [file, claims] : out.claims) out.files.push_back({.name = file});
  if (out.files.empty() && !has_errors(out.findings))
    throw Error::input("holds no hash that is computed here").in(source).remedy("gguf-hash --sha256");
  finish(out);
  return out;
}

}  // namespace assay
