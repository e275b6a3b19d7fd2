// Server-sent events out of bytes as they come, cut anywhere (HTML standard §9.2.6): the data of each event, lines of
// one event joined; comments, names and ids are passed over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

class EventStream {
 public:
  // The events that end within these bytes. Throws Error::input where one is larger than any answer.
  std::vector<std::string> push(std::string_view bytes);
  // Something has come that no event ended.
  bool amid_event() const { return !line_.empty() || has_data_; }

 private:
  void end_line(std::vector<std::string>& events);
  std::string line_, data_;
  bool has_data_ = false, after_cr_ = false, begun_ = false;
};

}  // namespace assay
