#include "core/formats/safetensors_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "core/formats/json_events.h"
#include "core/system/error.h"
#include "core/system/json.h"

namespace assay::safetensors {
namespace {

// serde_json, under the reference reader, refuses the 128th level.
constexpr int kMaxDepth = 127;
// {"":{"dtype":"U8","shape":[],"data_offsets":[0,0]}}: no tensor written as an object takes fewer bytes.
constexpr std::size_t kLeastTensorText = 50;
constexpr std::uint64_t kTextOffset = 8;

// A deviation is counted, and told once a file: a hostile header cannot make a million findings.
enum Deviation {
  duplicate_key,
  metadata_null,
  metadata_duplicate,
  extra_field,
  array_form,
  dtype_object,
  kDeviations
};
struct DeviationText {
  std::string_view code, one, many;
};
constexpr std::array<DeviationText, kDeviations> kDeviationTexts = {{
    {"safetensors.duplicate_key", "a tensor is described twice; the last description counts",
     "tensors are described more than once; the last description of each counts"},
    {"safetensors.metadata_null", "__metadata__ is null", "__metadata__ is null"},
    {"safetensors.metadata_duplicate_key", "__metadata__ has a key twice; the last value counts",
     "keys of __metadata__ are repeated; the last value of each counts"},
    {"safetensors.extra_field", "a tensor description has a field that the format does not know",
     "fields of tensor descriptions are unknown to the format"},
    {"safetensors.array_form", "a tensor is described by an array instead of an object",
     "tensors are described by arrays instead of objects"},
    {"safetensors.dtype_object", "a dtype is written as an object, {\"U8\": null}",
     "dtypes are written as objects, {\"U8\": null}"},
}};

// Events of the JSON parser. `slot_` says what the next value would be, `container_` what is being filled.
class Events {
 public:
  Events(std::string_view json, Reading reading, const fs::path& source, Header& header, PassingText* passing)
      : reader_(json, kMaxDepth, *this),
        reading_(reading),
        source_(source),
        header_(header),
        passing_(passing) {
    const auto braces = static_cast<std::size_t>(std::count(json.begin(), json.end(), '{'));
    header_.tensors.reserve(std::min(braces, json.size() / kLeastTensorText));
  }

  void read() {
    reader_.read();
    finish();
  }

  void null();
  void boolean(bool) { scalar("a boolean"); }
  void whole_number(std::uint64_t value);
  void other_number(double, std::string_view) { scalar("a negative, fractional or huge number"); }
  void string(std::string_view text);
  void key(std::string_view name);
  void start_object();
  void end_object();
  void start_array();
  void end_array();
  [[noreturn]] void fail(std::string message) const {
    Error error = Error::input(std::move(message));
    if (in_tensor_) error.tensor(tensor_.name);
    throw std::move(error).in(source_).at(kTextOffset + reader_.position());
  }

 private:
  enum class Slot {
    document,
    metadata,
    metadata_value,
    tensor,
    dtype,
    variant,
    shape,
    dimension,
    offsets,
    offset,
    extra,
    surplus
  };
  enum class Container { none, document, metadata, object, array, variant, shape, offsets };

  [[noreturn]] void mismatch(std::string_view what) const;
  void scalar(std::string_view what) const {
    if (slot_ != Slot::extra) mismatch(what);
  }
  void deviate(Deviation deviation) {
    const DeviationText& text = kDeviationTexts[deviation];
    if (reading_ == Reading::strict) fail(std::string(text.one));
    if (counts_[deviation]++ == 0 && in_tensor_) first_tensor_[deviation] = tensor_.name;
  }
  void name_field(std::string_view name);
  void begin_tensor(Container description);
  void end_tensor();
  void end_value();  // of a tensor's field
  void set_dtype(std::string_view name);

  void finish();

  JsonEventReader<Events> reader_;
  const Reading reading_;
  const fs::path& source_;
  Header& header_;
  PassingText* const passing_;

  Slot slot_ = Slot::document;
  Container container_ = Container::none;
  Container description_ = Container::object;  // how the current tensor is described
  int extra_depth_ = 0;                        // containers open within a field that nobody reads

  Tensor tensor_;                     // the one being read
  std::vector<std::uint64_t> shape_;  // its shape, in room that is used again
  bool in_tensor_ = false;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  int offsets_ = 0, variants_ = 0;

  bool has_metadata_ = false;
  std::string metadata_key_;
  std::array<std::uint64_t, kDeviations> counts_{};
  std::array<std::string, kDeviations> first_tensor_;
};

void Events::mismatch(std::string_view what) const {
  static constexpr std::string_view kExpected[] = {"the header is {}, not an object",
                                                   "__metadata__ is {}, not an object",
                                                   "a value of __metadata__ is {}, not a string",
                                                   "its description is {}, not an object",
                                                   "its dtype is {}, not a string",
                                                   "its dtype is an object around {}",
                                                   "its shape is {}, not an array",
                                                   "a dimension is {}, not a whole number",
                                                   "its data_offsets are {}, not an array",
                                                   "a data offset is {}, not a whole number",
                                                   "",
                                                   "its description, an array, has more than three entries"};
  fail(fmt::format(fmt::runtime(kExpected[static_cast<std::size_t>(slot_)]), what));
}

void Events::null() {
  if (slot_ == Slot::metadata) return deviate(metadata_null);
  if (slot_ != Slot::variant) scalar("null");
}

void Events::whole_number(std::uint64_t value) {
  if (slot_ == Slot::dimension) {
    shape_.push_back(value);
  } else if (slot_ == Slot::offset) {
    if (offsets_ == 2) fail("data_offsets has more than two entries");
    (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
  } else {
    scalar("a number");
  }
}

void Events::string(std::string_view text) {
  if (slot_ == Slot::dtype) {
    set_dtype(text);
    end_value();
  } else if (slot_ == Slot::metadata_value) {
    header_.metadata.emplace_back(std::move(metadata_key_), text);
    if (passing_ != nullptr) passing_->passed(reader_.position());
  } else {
    scalar("a string");
  }
}

void Events::start_object() {
  switch (slot_) {
    case Slot::document: container_ = Container::document; break;
    case Slot::metadata: container_ = Container::metadata; break;
    case Slot::tensor: begin_tensor(Container::object); break;
    case Slot::dtype:
      deviate(dtype_object);
      container_ = Container::variant;
      variants_ = 0;
      break;
    case Slot::extra: ++extra_depth_; break;
    default: mismatch("an object");
  }
}

void Events::start_array() {
  switch (slot_) {
    case Slot::tensor:
      deviate(array_form);
      begin_tensor(Container::array);
      slot_ = Slot::dtype;
      break;
    case Slot::shape:
      container_ = Container::shape;
      slot_ = Slot::dimension;
      has_shape_ = true;
      break;
    case Slot::offsets:
      container_ = Container::offsets;
      slot_ = Slot::offset;
      has_offsets_ = true;
      break;
    case Slot::extra: ++extra_depth_; break;
    default: mismatch("an array");
  }
}

void Events::key(std::string_view name) {
  if (extra_depth_ > 0) return;
  switch (container_) {
    case Container::document:
      if (name != "__metadata__") {
        slot_ = Slot::tensor;
        tensor_.name = name;
        in_tensor_ = true;
        break;
      }
      if (std::exchange(has_metadata_, true)) fail("__metadata__ appears twice");
      slot_ = Slot::metadata;
      break;
    case Container::metadata:
      slot_ = Slot::metadata_value;
      metadata_key_ = name;
      break;
    case Container::variant:
      if (++variants_ > 1) fail("its dtype is an object of more than one entry");
      slot_ = Slot::variant;
      set_dtype(name);
      break;
    default: name_field(name);
  }
}

void Events::name_field(std::string_view name) {
  const auto known = [&](bool seen, Slot slot) {
    if (seen) fail(fmt::format("its field {} appears twice", name));
    slot_ = slot;
  };
  if (name == "dtype") {
    known(has_dtype_, Slot::dtype);
  } else if (name == "shape") {
    known(has_shape_, Slot::shape);
  } else if (name == "data_offsets") {
    known(has_offsets_, Slot::offsets);
  } else {
    deviate(extra_field);
    slot_ = Slot::extra;
  }
}

void Events::set_dtype(std::string_view name) {
  const std::optional<ElementType> type = element_type_from_safetensors(name);
  if (!type) fail(fmt::format("its dtype \"{:.40}\" is unknown", name));
  tensor_.type = *type;
  has_dtype_ = true;
}

void Events::end_object() {
  if (extra_depth_ > 0) {
    --extra_depth_;
    return;
  }
  switch (container_) {
    case Container::object: end_tensor(); break;
    case Container::variant:
      if (variants_ == 0) fail("its dtype is an empty object");
      end_value();
      break;
    case Container::metadata: container_ = Container::document; break;
    default: container_ = Container::none;
  }
}

void Events::end_array() {
  if (extra_depth_ > 0) {
    --extra_depth_;
    return;
  }
  if (container_ == Container::array) return end_tensor();
  if (container_ == Container::offsets && offsets_ != 2) fail("data_offsets has fewer than two entries");
  end_value();
}

void Events::begin_tensor(Container description) {
  container_ = description_ = description;
  has_dtype_ = has_shape_ = has_offsets_ = false;
  offsets_ = 0;
  shape_.clear();
}

void Events::end_value() {
  container_ = description_;
  if (description_ == Container::object) return;
  slot_ = !has_shape_ ? Slot::shape : !has_offsets_ ? Slot::offsets : Slot::surplus;
}

void Events::end_tensor() {
  if (!has_dtype_) fail("its dtype is missing");
  if (!has_shape_) fail("its shape is missing");
  if (!has_offsets_) fail("its data_offsets are missing");
  tensor_.shape.assign(shape_.begin(), shape_.end());
  header_.tensors.push_back(std::exchange(tensor_, Tensor{}));
  in_tensor_ = false;
  container_ = Container::document;
  if (passing_ != nullptr) passing_->passed(reader_.position());
}

// Drops all but the last of entries with equal keys, keeps the order of the others, and returns the keys of
// those dropped. By sorting: names built to collide would make a hash table quadratic.
template <class Entry>
std::vector<std::string> drop_repeated(std::vector<Entry>& entries, std::string Entry::*key) {
  std::vector<std::uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int compared = (entries[a].*key).compare(entries[b].*key);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::vector<std::string> repeated;
  std::vector<std::uint32_t> dropped;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (entries[order[i - 1]].*key == entries[order[i]].*key) dropped.push_back(order[i - 1]);
  }
  if (dropped.empty()) return repeated;
  std::sort(dropped.begin(), dropped.end());
  std::size_t kept = 0, next = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (next < dropped.size() && dropped[next] == i) {
      repeated.push_back(std::move(entries[i].*key));
      ++next;
    } else {
      if (kept != i) entries[kept] = std::move(entries[i]);
      ++kept;
    }
  }
  entries.resize(kept);
  return repeated;
}

void Events::finish() {
  in_tensor_ = false;
  const auto repeated_tensors = drop_repeated(header_.tensors, &Tensor::name);
  if (!repeated_tensors.empty()) {
    tensor_.name = repeated_tensors.front();
    in_tensor_ = true;
    deviate(duplicate_key);
    counts_[duplicate_key] = repeated_tensors.size();
    in_tensor_ = false;
  }
  const auto repeated_keys = drop_repeated(header_.metadata, &std::pair<std::string, std::string>::first);
  if (!repeated_keys.empty()) {
    deviate(metadata_duplicate);
    counts_[metadata_duplicate] = repeated_keys.size();
  }
  for (int i = 0; i < kDeviations; ++i) {
    if (counts_[i] == 0) continue;
    const DeviationText& text = kDeviationTexts[i];
    header_.deviations.push_back(
        {.severity = Severity::warning,
         .code = std::string(text.code),
         .message = counts_[i] == 1 ? std::string(text.one) : fmt::format("{} {}", counts_[i], text.many),
         .file = {},
         .tensor = first_tensor_[i],
         .offset = {},
         .remedy = {}});
  }
}

bool is_json_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// "MUST begin with a { character (0x7B)", "MAY be trailing padded with whitespace (0x20)".
void check_padding(std::string_view json, Reading reading, const fs::path& source, Header& header) {
  const auto deviate = [&](std::string_view code, std::string_view message, std::size_t at) {
    if (reading == Reading::strict) throw Error::input(std::string(message)).in(source).at(kTextOffset + at);
    header.deviations.push_back({.severity = Severity::warning,
                                 .code = std::string(code),
                                 .message = std::string(message),
                                 .file = {},
                                 .tensor = {},
                                 .offset = kTextOffset + at,
                                 .remedy = {}});
  };
  if (!json.empty() && is_json_blank(json.front())) {
    deviate("safetensors.leading_whitespace", "header begins with white space instead of '{'", 0);
  }
  for (std::size_t i = json.size(); i > 0 && is_json_blank(json[i - 1]); --i) {
    if (json[i - 1] == ' ') continue;
    deviate("safetensors.trailing_whitespace", "header is padded with white space other than spaces", i - 1);
    break;
  }
}

}  // namespace

void read_header_json(std::string_view json, Reading reading, const fs::path& source, Header& header,
                      PassingText* passing) {
  check_padding(json, reading, source, header);
  Events(json, reading, source, header, passing).read();
}

}  // namespace assay::safetensors
