#include <algorithm>

#include "core/model/formats/all.h"

namespace assay {
namespace {

using namespace formats;

class FormatTable {
 public:
  FormatTable() { sort_endings(); }

  void add(const StoredFormat& format) {
    formats_.push_back(&format);
    sort_endings();
  }
  void remove_last() {
    formats_.pop_back();
    sort_endings();
  }
  std::span<const StoredFormat* const> formats() const { return formats_; }
  std::span<const NameEnding> endings() const { return endings_; }

 private:
  void sort_endings() {
    endings_.clear();
    for (const StoredFormat* format : formats_)
      endings_.insert(endings_.end(), format->endings.begin(), format->endings.end());
    std::stable_sort(endings_.begin(), endings_.end(), [](const NameEnding& a, const NameEnding& b) {
      return a.suffix.size() > b.suffix.size();
    });
  }

  // From the most general to the most particular.
  std::vector<const StoredFormat*> formats_ = {
      &kPlain, &kScaled, &kPackedInts, &kNvfp4,        &kMx,      &kModeloptInt4, &kGptq,
      &kAwq,   &kQuark,  &kMlx,        &kBitsandbytes, &kTorchao, &kGguf,
  };
  std::vector<NameEnding> endings_;
};

FormatTable& table() {
  static FormatTable formats;
  return formats;
}

}  // namespace

std::span<const StoredFormat* const> stored_formats() {
  return table().formats();
}

std::span<const NameEnding> name_endings() {
  return table().endings();
}

AddedFormat::AddedFormat(const StoredFormat& format) {
  table().add(format);
}

AddedFormat::~AddedFormat() {
  table().remove_last();
}

}  // namespace assay
