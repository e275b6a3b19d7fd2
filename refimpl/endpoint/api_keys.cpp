#include "refimpl/endpoint/api_keys.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <sstream>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::string_view kScheme = "Bearer ";
constexpr std::size_t kShortest = 8;
constexpr std::uint64_t kMostBytes = 1 << 20;

std::string digest_of_key(std::string_view key) {
  return digest_of(DigestKind::sha256, std::as_bytes(std::span(key))).hex();
}

std::vector<std::string> keys_of_file(const std::string& file) {
  std::vector<std::string> keys;
  std::istringstream lines(read_small_file(file, kMostBytes));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const bool fits = line.size() >= kShortest &&
                      std::all_of(line.begin(), line.end(), [](char c) { return c > ' ' && c <= '~'; });
    if (!fits) throw Error::input("a key has at least 8 printable characters, and no blanks").in(file);
    keys.push_back(line);
  }
  if (keys.empty())
    throw Error::input("no key").in(file).remedy("write one, as 'openssl rand -hex 32' makes it");
  return keys;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

ApiKeys ApiKeys::read(const std::string& file) {
  ApiKeys keys;
  for (const std::string& key : keys_of_file(file)) keys.digests_.push_back(digest_of_key(key));
  return keys;
}

void ApiKeys::require_for(const std::string& host, const std::string& said, const std::string& option) const {
  if (is_loopback(host) || wanted()) return;
  throw Error::usage(fmt::format("{} can be reached from elsewhere", escape_for_terminal(said)))
      .remedy(fmt::format("name the keys of those who may ask with {} FILE", option));
}

bool ApiKeys::admits(std::string_view authorization) const {
  if (!wanted()) return true;
  if (!authorization.starts_with(kScheme)) return false;
  const std::string given = digest_of_key(authorization.substr(kScheme.size()));
  int same = 0;
  for (const std::string& digest : digests_)
    same |= CRYPTO_memcmp(given.data(), digest.data(), digest.size()) == 0 ? 1 : 0;
  return same != 0;
}

std::string first_authorization(const std::string& file) {
  return std::string(kScheme) + keys_of_file(file).front();
}

}  // namespace assay
