// What the two processes of a plugin's examination say to each other over a socket: frames, whose length and
// every field in them is checked. The one that runs the plugin is not believed anything: what it sends is
// read as a hostile file is.
//
//   frame    magic u32, kind u32, length u64, then so many bytes: fields in the order of the structs below
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/harness/case_run.h"
#include "kernels/plugin/adapt.h"

namespace assay::message {

enum class Kind : std::uint32_t {
  load = 1,      // asks for: loaded, or refused
  run = 2,       // asks for: ran
  time = 3,      // asks for: timed
  loaded = 4,    // PluginDescription
  refused = 5,   // a line: the file is no plugin
  ran = 6,       // CaseRun
  timed = 7,     // seconds, or a negative number
  fault = 8,     // a line: where a fatal signal happened; the last thing said
  ran_last = 9,  // as ran; the process is of no further use
};

inline constexpr std::uint32_t kMagic = 0x41535059;              // "ASPY"
inline constexpr std::size_t kHeaderBytes = 16;                  // of a frame
inline constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of a frame's body

struct Header {
  Kind kind;
  std::uint64_t length;
};
std::vector<std::byte> frame(Kind kind, std::span<const std::byte> body);
// Throws Error::input on anything but a header.
Header parse_header(std::span<const std::byte> bytes);

struct RunRequest {
  std::uint32_t kernel = 0;  // its place in the description
  std::string id;
  Variation variation;
  double least = 0;  // of Kind::time
};
struct PluginDescription {
  std::string name, version, remark;
  std::string no_device;  // why kernels for CUDA cannot run; empty: they can, or there are none
  std::vector<PluginKernel> kernels;
};

std::vector<std::byte> pack(const RunRequest& request);
std::vector<std::byte> pack(const PluginDescription& description);
std::vector<std::byte> pack(const CaseRun& run);
std::vector<std::byte> pack(double seconds);
std::vector<std::byte> pack(const std::string& line);

// Throw Error::input on bytes that are not of this kind.
RunRequest parse_request(std::span<const std::byte> bytes);
PluginDescription parse_description(std::span<const std::byte> bytes);
CaseRun parse_run(std::span<const std::byte> bytes);
double parse_seconds(std::span<const std::byte> bytes);
std::string parse_line(std::span<const std::byte> bytes);

}  // namespace assay::message
