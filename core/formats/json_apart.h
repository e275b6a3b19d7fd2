// Of an object of many thousand members a document takes thirty times as long as whoever reads it event by event
// (json_events.h): a document without it, then, that has in its place what such a reader makes of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/formats/json.h"

namespace assay {

// The events of an object, from its start to its end. A view is good until the next.
class ApartReader {
 public:
  virtual ~ApartReader() = default;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void whole_number(std::uint64_t value) = 0;
  virtual void other_number(double value, std::string_view text) = 0;
  virtual void string(std::string_view value) = 0;
  virtual void key(std::string_view name) = 0;
  virtual void start_object() = 0;
  virtual void end_object() = 0;
  virtual void start_array() = 0;
  virtual void end_array() = 0;
  // A key of the object itself, whose value is that of the last key which had an object.
  virtual void repeat(std::string_view key) = 0;
  // Behind the end: what the document has there. The next object begins anew.
  virtual std::string taken() = 0;
};

// As parse_json, and where a member named `name`, wherever it stands, is an object, `reader` reads it.
ParsedJson parse_json_apart(std::string_view name, ApartReader& reader, std::string_view text,
                            const std::filesystem::path& source, const JsonLimits& limits = {});

}  // namespace assay
