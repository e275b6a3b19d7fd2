// What `compare model` found, as table, JSON and CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"
#include "kernels/compare/model.h"

namespace assay {
namespace {

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}

std::string exact_percent(double share) {
  return fmt::format("{:.4g}%", 100 * share);
}

// "3", "mtp.0", or the tap itself where it belongs to no layer.
const std::string& place_of(const TapReport& tap) {
  return tap.place.empty() ? tap.name : tap.place;
}

Json totals_json(const ErrorTotals& e) {
  Json ulps = Json::object();
  for (std::size_t i = 0; i < kUlpClasses; ++i) ulps[std::string(ulp_class_name(i))] = e.ulps[i];
  return {{"relative", number(e.relative())},
          {"max_abs", number(e.max_abs)},
          {"nmse", number(e.nmse())},
          {"one_minus_cosine", number(e.one_minus_cosine())},
          {"pattern_faults", e.pattern_faults},
          {"worst_token", e.worst_row},
          {"worst_token_relative", number(e.worst_row_error)},
          {"ulps", std::move(ulps)}};
}

Json tap_json(const TapReport& tap) {
  const ErrorTotals local = tap.local.all();
  Json json = {{"name", tap.name},
               {"kind", tap.kind},
               {"ratio", number(tap.ratio)},
               {"worse_phase", tap.in_decode ? "decode" : "prefill"},
               {"local",
                {{"relative", number(local.relative())},
                 {"prefill", number(tap.local.prefill.relative())},
                 {"decode", number(tap.local.decode.relative())}}},
               {"plain", {{"prefill", number(tap.plain_prefill())}, {"decode", number(tap.plain_decode())}}},
               {"storage_noise", tap.noise},
               {"free", totals_json(tap.free.all())}};
  const auto layer = parse_u64(tap.place);
  if (layer) json["layer"] = *layer;
  return json;
}

Json logits_json(const LogitsReport& l) {
  return {{"positions", l.positions},
          {"kl_mean", number(l.kl_mean)},
          {"kl_max", number(l.kl_max)},
          {"kl_max_at", l.kl_max_at},
          {"same_first", l.same_first},
          {"top5_overlap", l.top5_overlap},
          {"loss_reference", number(l.loss_reference)},
          {"loss_test", number(l.loss_test)},
          {"loss_difference", number(l.loss_difference)},
          {"standard_error", number(l.standard_error)},
          {"perplexity_reference", number(std::exp(l.loss_reference))},
          {"perplexity_difference", number(l.perplexity_difference())}};
}

Json greedy_json(const GreedyReport& g) {
  Json json = {{"reference", g.reference}, {"test", g.test}};
  json["parts_at"] = g.parts_at ? Json(*g.parts_at) : Json();
  if (g.parts_at) json["margin"] = number(g.margin);
  return json;
}

void print_predictions(const Output& output, const ModelComparison& r) {
  const LogitsReport& l = r.logits;
  output.line(fmt::format(
      "logits: KL {:.3g} nats a token, at most {:.3g} (token {}); same first choice {}, "
      "{} of the first five",
      l.kl_mean, l.kl_max, l.kl_max_at, exact_percent(l.same_first), exact_percent(l.top5_overlap)));
  if (l.positions > 1)
    output.line(fmt::format(
        "loss of the text: {:.6g} against {:.6g} nats a token, difference {:+.3g} ± {:.2g}; "
        "perplexity {:+.3g}",
        l.loss_test, l.loss_reference, l.loss_difference, l.standard_error, l.perplexity_difference()));
  if (r.draft)
    output.line(
        fmt::format("multi-token prediction: KL {:.3g} nats a token, at most {:.3g}; same first choice {}",
                    r.draft->kl_mean, r.draft->kl_max, exact_percent(r.draft->same_first)));
  if (r.greedy.parts_at)
    output.line(
        fmt::format("greedy texts part at new token {} of {}, where the reference's first two logits "
                    "are {:.3g} apart",
                    *r.greedy.parts_at, r.greedy.reference.size(), r.greedy.margin));
  else if (!r.greedy.reference.empty())
    output.line(fmt::format("greedy texts are the same for {} tokens", r.greedy.reference.size()));
  output.line(r.probe_inert ? "the probe changes nothing: logits with and without it have the same bits"
                            : "THE PROBE CHANGES THE LOGITS");
  if (r.requantized > 0)
    output.line(fmt::format("{} weights are stored in another form; the yardstick noises each by as much",
                            r.requantized));
}

}  // namespace

std::string verdict_line(const ModelComparison& r) {
  const char* word = r.status == CaseStatus::passed       ? "OK"
                     : r.status == CaseStatus::mistrusted ? "MISTRUSTED"
                                                          : "FAILED";
  std::string text = fmt::format("{}: ", word);
  if (r.status == CaseStatus::passed)
    text += fmt::format("no divergence at {} taps; the largest local error is {:.2f} of what is allowed",
                        r.taps.size(), r.largest_ratio());
  for (std::size_t i = 0; i < r.reasons.size(); ++i) text += (i == 0 ? "" : "; ") + r.reasons[i];
  for (const std::string& note : r.notes) text += "; " + note;
  return text;
}

void print_comparison(const Output& output, const ModelComparison& r) {
  Table table(
      {"layer", "worst tap", "local error", "of allowed", "error so far", "max abs", "1-cos", ">16 ulp"},
      {Table::Align::right, Table::Align::left, Table::Align::right, Table::Align::right, Table::Align::right,
       Table::Align::right, Table::Align::right, Table::Align::right});
  for (std::size_t first = 0; first < r.taps.size();) {
    std::size_t end = first + 1, worst = first;
    while (end < r.taps.size() && !r.taps[end].place.empty() && r.taps[end].place == r.taps[first].place)
      ++end;
    for (std::size_t i = first; i < end; ++i) {
      if (!(r.taps[i].ratio <= r.taps[worst].ratio)) worst = i;
    }
    const TapReport& tap = r.taps[worst];
    const bool here = r.first_divergence && *r.first_divergence >= first && *r.first_divergence < end;
    const TapReport& shown = here ? r.taps[*r.first_divergence] : tap;
    const ErrorTotals out = r.taps[end - 1].free.all();
    table.add({place_of(shown), shown.kind + (here ? "  <- first divergence" : ""),
               fmt::format("{:.2e}", shown.local.all().relative()), fmt::format("{:.3g}", shown.ratio),
               fmt::format("{:.2e}", out.relative()), fmt::format("{:.2e}", out.max_abs),
               fmt::format("{:.1e}", out.one_minus_cosine()), exact_percent(out.beyond_16_ulps())});
    first = end;
  }
  if (!r.taps.empty()) {
    const std::string text = table.render();
    output.line(std::string_view(text).substr(0, text.size() - 1));
    print_predictions(output, r);
  }
}

Json to_json(const ModelComparison& r) {
  Json taps = Json::array();
  for (const TapReport& tap : r.taps) taps.push_back(tap_json(tap));
  Json first;
  if (r.first_divergence) first = r.taps[*r.first_divergence].name;
  return {{"status", name(r.status)},
          {"reasons", r.reasons},
          {"notes", r.notes},
          {"first_divergence", std::move(first)},
          {"probe_inert", r.probe_inert},
          {"bit_equal", r.bit_equal},
          {"largest_ratio", number(r.largest_ratio())},
          {"tokens", {{"prefill", r.prefill}, {"decode", r.decode}}},
          {"windows", r.windows},
          {"requantized_weights", r.requantized},
          {"logits", logits_json(r.logits)},
          {"draft", r.draft ? logits_json(*r.draft) : Json()},
          {"greedy", greedy_json(r.greedy)},
          {"taps", std::move(taps)}};
}

std::string to_csv(const ModelComparison& r) {
  std::string csv =
      "tap,layer,kind,ratio,phase,local_prefill,local_decode,plain_prefill,plain_decode,storage_noise,"
      "free_relative,max_abs,nmse,one_minus_cosine,beyond_16_ulps\n";
  for (const TapReport& tap : r.taps) {
    const ErrorTotals e = tap.free.all();
    csv += fmt::format(
        "{},{},{},{:.6g},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g}\n",
        tap.name, tap.place, tap.kind, tap.ratio, tap.in_decode ? "decode" : "prefill",
        tap.local.prefill.relative(), tap.local.decode.relative(), tap.plain_prefill(), tap.plain_decode(),
        tap.noise, e.relative(), e.max_abs, e.nmse(), e.one_minus_cosine(), e.beyond_16_ulps());
  }
  return csv;
}

void print_model_mutants(const Output& output, const std::vector<ModelMutantResult>& results) {
  Table table({"op", "planted", "expected at", "named", "of allowed", "fate"},
              {Table::Align::left, Table::Align::left, Table::Align::left, Table::Align::left,
               Table::Align::right, Table::Align::left});
  for (const ModelMutantResult& r : results)
    table.add({r.op, r.name, r.expected, r.named.empty() ? "-" : r.named, fmt::format("{:.3g}", r.ratio),
               std::string(name(r.fate))});
  const std::string text = table.render();
  output.line(std::string_view(text).substr(0, text.size() - 1));
}

Json to_json(const ModelMutantResult& r) {
  return {{"op", r.op},       {"name", r.name},           {"family", r.family},  {"expected", r.expected},
          {"named", r.named}, {"ratio", number(r.ratio)}, {"fate", name(r.fate)}};
}

}  // namespace assay
