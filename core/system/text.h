// Small text jobs every floor shares: making hostile names safe to print, sizes and durations readable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay {

// Control characters, DEL, invalid UTF-8 and Unicode direction overrides become \n, \xNN or \u{NNNN}.
// Printable UTF-8, the backslash included, is left alone: for people to read, not to be parsed back.
std::string escape_for_terminal(std::string_view text);

bool is_valid_utf8(std::string_view text);

// "4.3 GB", "512 MiB": decimal units as disks and hubs quote them; exact below 1000 bytes.
std::string human_bytes(std::uint64_t bytes);
// 671026419200 -> "671,026,419,200"
std::string with_thousands(std::uint64_t value);
// 75.3 -> "1m15s", 0.42 -> "0.42s"
std::string human_duration(double seconds);

// "16MiB", "5GB", "1048576", "48 GB" -> bytes. KB/MB/GB/TB are powers of 1000, KiB/MiB/GiB/TiB of 1024.
// Throws Error::usage on anything else, on overflow and on negative numbers.
std::uint64_t parse_bytes(std::string_view text);

// Decimal digits only, the whole text, no sign; nullopt otherwise or on overflow.
std::optional<std::uint64_t> parse_u64(std::string_view text);

std::string to_hex(std::span<const std::uint8_t> bytes);
// Lower- or upper-case hex of exactly 2*out.size() digits; false otherwise.
bool from_hex(std::string_view hex, std::span<std::uint8_t> out);

std::string_view trim(std::string_view text);

}  // namespace assay
