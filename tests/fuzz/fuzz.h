// What fuzz targets share. A target is one file here, <name>_fuzz.cpp, that defines LLVMFuzzerTestOneInput,
// and a folder corpus/<name> of small inputs. Its first comment may say "// link: assay_verify" for the
// libraries it needs beside assay_formats. Under the preset `asan` it is a libFuzzer program; in every other
// build the same function runs over the corpus as a test (replay_main.cpp).
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include "core/system/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace assay::fuzz {

// A broken promise of the code under test: stops the fuzzer, which keeps the input.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// The result of `read`, or nullopt where it refuses its input. A refusal must be one printable line, and must
// blame the input: an internal error is a fault of ours.
template <class Read>
auto accepted(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::input, "bad input is an input error");
    require(error.line().find('\n') == std::string::npos, "an error is one line");
    return std::nullopt;
  }
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace assay::fuzz
