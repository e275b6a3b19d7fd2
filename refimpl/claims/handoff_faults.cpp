#include "refimpl/claims/handoff_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/system/error.h"
#include "refimpl/speculation/layer_drafter.h"
#include "refimpl/step/cache_contents.h"

namespace assay {
namespace {

constexpr std::size_t kHandedTokens = 21;
constexpr std::size_t kPromptsOfDrafts = 24;

// [tokens, heads, numbers] taken for [heads, tokens, numbers].
void swap_axes(std::vector<double>& rows, std::size_t row_numbers, std::uint64_t heads) {
  if (row_numbers == 0) return;
  const std::size_t tokens = rows.size() / row_numbers, head = row_numbers / heads;
  const std::vector<double> before = rows;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t h = 0; h < heads; ++h)
      std::copy_n(before.data() + (h * tokens + t) * head, head, rows.data() + t * row_numbers + h * head);
  }
}

HeadRange local_times_ranks(std::uint64_t heads, std::uint64_t ranks, std::uint64_t rank) {
  const std::uint64_t local = std::max<std::uint64_t>(1, heads / ranks);
  return {rank * local, local, local * ranks};
}

// One buffer for all that waits to be sent.
HandoffMade reused_buffer() {
  HandoffMade made;
  made.stage = [buffer = std::make_shared<std::vector<double>>()](std::vector<double> numbers) {
    *buffer = std::move(numbers);
    return buffer;
  };
  return made;
}

HandoffMade layers_of_a_stage(std::uint64_t layers) {
  HandoffMade made;
  made.layer_of = [layers](std::uint64_t layer) { return layer % layers; };
  return made;
}

// Holds a text's blocks while they are loaded, until it is computed on: or for ever, where it is given up before.
class LeaksLoads : public Scheduler {
 public:
  using Scheduler::Scheduler;
  void planned(ServedText& text, std::size_t tokens) override {
    Scheduler::planned(text, tokens);
    const bool loading = loading_.insert(&text).second;
    if (!loading && !over_.insert(&text).second) return;
    for (const BlockId block : held_[&text] = loading ? text.tables[0] : held_[&text]) {
      if (block < 0) continue;
      loading ? pools()[0]->hold(block) : pools()[0]->release(block);
    }
  }

 private:
  std::set<const ServedText*> loading_, over_;
  std::map<const ServedText*, std::vector<BlockId>> held_;
};

HandedDecoder given_up_while_loading() {
  HandedDecoder decoder;
  decoder.cancel = true;
  decoder.parts.scheduler = [](const SchedulerOptions& options, Scheduler::Feeder feeder) {
    return std::unique_ptr<Scheduler>(std::make_unique<LeaksLoads>(options, std::move(feeder)));
  };
  return decoder;
}

HandedDecoder forgets_the_first() {
  HandedDecoder decoder;
  decoder.parts.end = [](const TextEnd& text) {
    return reason_to_end(text.stops, text.made - 1, text.most, text.tokens, text.limit);
  };
  return decoder;
}

ServingRequest handed_request(const HandoffModel& with, std::size_t new_tokens, std::size_t prompt) {
  ServingRequest request;
  for (std::size_t i = 0; i < kHandedTokens; ++i)
    request.text.prompt.push_back(
        static_cast<TokenId>((7 * i * i + (3 + 2 * prompt) * i + 5 + prompt) % with.model.vocabulary()));
  request.text.max_new_tokens = new_tokens;
  return request;
}

std::string seen(const HandoffModel& with, const HandoffFault& fault, const HandoffMade& made,
                 const HandedDecoder& decoder, std::size_t prompt) {
  const ServingRequest request = handed_request(with, fault.new_tokens, prompt);
  HandoffOptions options = fault.options;
  if (fault.of_heads && options.senders > 1) options.senders = 2 * with.shape.layers.front().heads;
  const HandedRun handed = hand_over_and_write(with, request, options, decoder, made);
  if (decoder.cancel)
    return handed.held == 0 ? std::string() : fmt::format("{} blocks are held by nobody's text", handed.held);
  const HandedRun uncut = write_uncut(with, request, {.speculation = decoder.speculation});
  if (const std::string wrong = difference(uncut, handed); !wrong.empty()) return wrong;
  if (handed.counts.right != uncut.counts.right)
    return fmt::format("guesses right by place: {}, uncut {}", fmt::join(handed.counts.right, " "),
                       fmt::join(uncut.counts.right, " "));
  return {};
}

HandedDecoder with_drafts(HandedDecoder decoder, const HandoffModel& with) {
  decoder.speculation = {.source = std::make_shared<LayerDrafts>(with.model, with.ops), .shape = {1, 1}};
  return decoder;
}

}  // namespace

std::vector<HandoffFault> handoff_faults() {
  HandoffMade swapped, dealt, undrafted, gridded;
  swapped.arrived = swap_axes;
  dealt.deal = local_times_ranks;
  undrafted.hands_drafts = false;
  gridded.place = [](const PartHeader& header, std::size_t block_tokens) {
    return header.first / block_tokens * block_tokens;
  };
  return {
      {.number = 41,
       .shipped_in = "TensorRT-LLM#6507",
       .what = "tokens and heads of a block change places",
       .made = swapped,
       .of_heads = true},
      {.number = 42,
       .shipped_in = "sglang#19086",
       .what = "heads are taken for a rank's × ranks, though replicated",
       .made = dealt,
       .options = {.senders = 2},
       .of_heads = true},
      {.number = 43,
       .shipped_in = "sglang#7147",
       .what = "the first token is not counted among those asked for",
       .decoder = forgets_the_first(),
       .new_tokens = 1},
      {.number = 44,
       .shipped_in = "sglang#7242",
       .what = "hidden states are sent, and the prediction layers begin without them",
       .made = undrafted,
       .options = {.draft = DraftHandoff::hidden},
       .new_tokens = 40,
       .of_drafts = true},
      {.number = 45,
       .shipped_in = "vllm-ascend#15900",
       .what = "layers are numbered within their stage of a pipeline",
       .made = layers_of_a_stage(1)},
      {.number = 46,
       .shipped_in = "vllm#45704",
       .what = "a buffer is written again before what it held was sent",
       .made = reused_buffer(),
       .options = {.by_layer = false},
       .of_rows = true},
      {.number = 47,
       .shipped_in = "LMCache#2706",
       .what = "rows are placed by whole blocks, and come in other chunks",
       .made = gridded,
       .options = {.chunk = 5},
       .of_rows = true},
      {.number = 48,
       .shipped_in = "vllm#46283",
       .what = "a text given up while it is loaded leaves its blocks held",
       .decoder = given_up_while_loading()},
  };
}

std::string why_not(const HandoffFault& fault, const HandoffModel& with) {
  const auto& layers = with.shape.layers;
  const bool heads =
      std::all_of(layers.begin(), layers.end(), [](const auto& layer) { return layer.heads > 1; });
  if (fault.of_heads && !heads) return "not all its layers keep several heads of keys";
  if (fault.of_rows && !keeps_rows(with.model.cache_widths())) return "no layer keeps rows of its tokens";
  if (fault.of_drafts && with.model.draft_layers() == 0) return "it has no layers for multi-token prediction";
  if (!with.model.cache_serves(kHandedTokens, kHandedTokens + fault.new_tokens))
    return "its rotary frequencies follow the length: what is handed over is read anew";
  return {};
}

std::string catch_handoff_fault(const HandoffModel& with, const HandoffFault& fault) {
  HandedDecoder sound{.block_tokens = fault.decoder.block_tokens, .cancel = fault.decoder.cancel};
  HandedDecoder faulty = fault.decoder;
  if (fault.of_drafts) {
    sound = with_drafts(sound, with);
    faulty = with_drafts(faulty, with);
  }
  // Only which guesses are right tells of drafts, and few are: of one prompt they may be the same by chance.
  const std::size_t prompts = fault.of_drafts ? kPromptsOfDrafts : 1;
  std::string found;
  for (std::size_t prompt = 0; prompt < prompts && found.empty(); ++prompt) {
    if (const std::string wrong = seen(with, fault, {}, sound, prompt); !wrong.empty())
      throw Error::internal("a hand-off without a fault: " + wrong);
    found = seen(with, fault, fault.made, faulty, prompt);
  }
  return found;
}

}  // namespace assay
