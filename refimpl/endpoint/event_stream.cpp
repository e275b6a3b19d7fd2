#include "refimpl/endpoint/event_stream.h"

#include <utility>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::size_t kMostOfAnEvent = 64 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

void EventStream::end_line(std::vector<std::string>& events) {
  std::string line = std::exchange(line_, {});
  if (!std::exchange(begun_, true) && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  if (line.empty()) {
    if (std::exchange(has_data_, false)) events.push_back(std::exchange(data_, {}));
    return;
  }
  if (!line.starts_with("data") || (line.size() > 4 && line[4] != ':')) return;
  std::string_view value = std::string_view(line).substr(std::min<std::size_t>(5, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

std::vector<std::string> EventStream::push(std::string_view bytes) {
  std::vector<std::string> events;
  for (const char c : bytes) {
    if (c == '\n' && std::exchange(after_cr_, false)) continue;  // the line ended with the CR before it
    after_cr_ = c == '\r';
    if (c == '\n' || c == '\r') {
      end_line(events);
    } else {
      line_ += c;
    }
    if (line_.size() + data_.size() > kMostOfAnEvent) throw Error::input("an event is larger than 64 MiB");
  }
  return events;
}

}  // namespace assay
