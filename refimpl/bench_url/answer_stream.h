// Bytes of an answer, each with the time at which it came, to the record of its request. Asks no clock.
//
//   AnswerStream stream(record);
//   stream.push("data: {…}\n\n", 0.25);
//   stream.finish(answer.failure, 0.9);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "refimpl/bench_url/request_record.h"
#include "refimpl/endpoint/event_stream.h"

namespace assay {

class AnswerStream {
 public:
  explicit AnswerStream(RequestRecord& record) : record_(record) {}

  // False: there is nothing more to wait for, since the server says that something went wrong or sends what cannot be read.
  bool push(std::string_view bytes, double at);
  // The connection has no more; `failure`: what it said, or what the answer's status says. Empty: it ended as it should.
  void finish(std::string_view failure, double at);

 private:
  void take(const StreamChunk& chunk, double at);
  void count(const StreamChunk& chunk, double at);
  bool fail(std::string_view why);
  bool pieces_differ() const;

  RequestRecord& record_;
  EventStream events_;
  bool done_ = false, failed_ = false, any_choice_ = false;
  bool usage_counts_on_ = false;  // it stands beside every chunk (vLLM's continuous_usage_stats)
  std::size_t told_before_ = 0;   // by that
  std::string text_;
  std::vector<std::string> pieces_;
  bool pieces_are_text_ = true;
};

}  // namespace assay
