#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/system/table.h"
#include "core/system/text.h"
#include "paramcount/render.h"
#include "paramcount/sheet.h"

namespace assay {
namespace {

constexpr auto kLeft = Table::Align::left, kRight = Table::Align::right;

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (part == 0 || whole == 0) return "";
  const double share = 100 * static_cast<double>(part) / static_cast<double>(whole);
  return share < 0.01 ? "<0.01%" : fmt::format("{:.2f}%", share);
}

std::string number(std::uint64_t value) {
  return value == 0 ? "" : with_thousands(value);
}

std::string signed_number(std::int64_t value) {
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  return (value < 0 ? "-" : "+") + with_thousands(magnitude);
}

std::string rate(double value, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "K", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(kPrefixes)) value /= 1000, ++prefix;
  return fmt::format("{:.4g} {}{}", value, kPrefixes[prefix], unit);
}

class Report {
 public:
  Report(const Model& model, const Question& question, const Answer& answer, const RenderSettings& settings,
         bool markdown)
      : model_(model), question_(question), answer_(answer), settings_(settings), sheet_(markdown) {}

  std::string run() {
    about();
    tree();
    parts();
    totals();
    left_out();
    if (model_.reconciliation) reconciliation();
    findings();
    settings_.memory ? memory() : memory_line();
    if (settings_.compute) compute();
    if (answer_.plan) plan();
    if (answer_.searched) search();
    return sheet_.take();
  }

 private:
  void about() {
    const ModuleTree& t = model_.tree;
    sheet_.heading(fmt::format("{} ({}), from {}", t.title, t.architecture, model_.source.string()));
    std::string line =
        fmt::format("{} layers, hidden size {}, vocabulary {}", t.layers, t.hidden_size, t.vocabulary);
    if (t.experts > 0)
      line += knows_activation(t)
                  ? fmt::format(", {} experts of which {} a token", t.experts, t.experts_per_token)
                  : fmt::format(", {} experts, how many a token is not known", t.experts);
    line += model_.reconciliation ? "; bytes as stored" : "; bytes as " + model_.format.title;
    sheet_.line(line);
  }

  void add_row(std::vector<std::vector<std::string>>& cells, const Row& row, int depth) const {
    if (depth >= settings_.depth) return;
    const std::string times = row.count > 1 ? fmt::format("{} ×", row.count) : "";
    std::vector<std::string> line = {std::string(static_cast<std::size_t>(2 * depth), ' ') + row.title,
                                     times,
                                     number(row.params),
                                     number(row.total),
                                     row.mtp || row.tower ? "" : percent(row.total, model_.totals.total),
                                     number(row.active),
                                     row.bytes == 0 ? "" : human_bytes(row.bytes)};
    if (settings_.formulas)
      line.push_back(row.formula.empty() ? "" : row.formula + " = " + with_thousands(row.params));
    cells.push_back(std::move(line));
    // A row with a single row below it that says the same needs no repetition.
    const bool lone_tensor = row.children.size() == 1 && row.children[0].children.empty();
    if (lone_tensor) return;
    for (const Row& child : row.children) add_row(cells, child, depth + 1);
  }

  void tree() {
    sheet_.heading("Modules");
    std::vector<std::string> header = {"MODULE", "TIMES", "EACH", "TOTAL", "SHARE", "ACTIVE", "BYTES"};
    std::vector<Table::Align> align = {kLeft, kRight, kRight, kRight, kRight, kRight, kRight};
    if (settings_.formulas) header.push_back("ARITHMETIC OF EACH"), align.push_back(kLeft);
    std::vector<std::vector<std::string>> cells;
    for (const Row& row : model_.rows) add_row(cells, row, 0);
    sheet_.table(header, align, cells);
  }

  void parts() {
    sheet_.heading("By part, all layers together");
    std::vector<std::vector<std::string>> cells;
    for (const PartRow& part : model_.parts) {
      cells.push_back({part.title, number(part.total),
                       part.beside ? "" : percent(part.total, model_.totals.total), number(part.active),
                       human_bytes(part.bytes)});
    }
    sheet_.table({"PART", "PARAMETERS", "SHARE", "ACTIVE", "BYTES"}, {kLeft, kRight, kRight, kRight, kRight},
                 cells);
  }

  std::string activated(std::uint64_t parameters) const {
    return (knows_activation(model_.tree) ? "" : "not known, at most ") + with_thousands(parameters);
  }

  void totals() {
    sheet_.heading("Totals");
    const Totals& t = model_.totals;
    std::vector<std::vector<std::string>> cells = {
        {"total", with_thousands(t.total),
         t.towers > 0 ? "language model; tied weights once, buffers never"
                      : "main model; tied weights once, buffers never"},
        {"activated", activated(t.active), "what one token meets, input embedding included"},
        {"activated without input embedding", activated(t.active_without_embedding),
         model_.tree.tied_embeddings ? "the tied matrix stays, as output head"
                                     : "the lookup computes nothing"},
        {"in matrix products", activated(t.matmul_active), "without norms and biases: 2 FLOPs each"}};
    if (t.mtp_own > 0) {
      cells.push_back({"MTP, own", with_thousands(t.mtp_own), "multi-token prediction, beside the total"});
      cells.push_back(
          {"MTP, activated", with_thousands(t.mtp_active),
           fmt::format("{} with the shared embedding and head", with_thousands(t.mtp_active_with_shared))});
      if (t.mtp_duplicates > 0)
        cells.push_back({"MTP, stored again", with_thousands(t.mtp_duplicates),
                         "embedding and head, duplicated in checkpoints"});
    }
    if (t.towers > 0)
      cells.push_back(
          {"towers", with_thousands(t.towers), "vision, audio, projectors: no text token meets them"});
    if (t.towers + t.mtp_own > 0)
      cells.push_back(
          {"all of it", with_thousands(t.all()), "the checkpoint's parameters, duplicates aside"});
    sheet_.table({"", "PARAMETERS", ""}, {kLeft, kRight, kLeft}, cells);
    if (!settings_.formulas) return;
    sheet_.line("total = " + sum(&Row::total, t.total));
    sheet_.line("activated = " + sum(&Row::active, t.active));
  }

  // "926,679,040 + 3 × 583,483,392 + … = 671,026,419,200", over the rows of the main model.
  std::string sum(std::uint64_t Row::*figure, std::uint64_t result) const {
    std::string text;
    for (const Row& row : model_.rows) {
      if (row.mtp || row.tower || row.*figure == 0) continue;
      text += text.empty() ? "" : " + ";
      const bool even = row.count > 1 && row.*figure % row.count == 0;
      text += even ? fmt::format("{} × {}", row.count, with_thousands(row.*figure / row.count))
                   : with_thousands(row.*figure);
    }
    return text + " = " + with_thousands(result);
  }

  void left_out() {
    if (!model_.tree.not_counted.empty()) {
      sheet_.heading("Not counted");
      for (const NotCounted& part : model_.tree.not_counted)
        sheet_.line(part.parameters
                        ? fmt::format("{}: {} parameters", part.what, with_thousands(*part.parameters))
                        : part.what);
    }
    if (model_.tree.defaults.empty()) return;
    sheet_.heading("Not in the config, taken from the model class");
    std::string line;
    for (const DefaultTaken& taken : model_.tree.defaults)
      line += (line.empty() ? "" : ", ") + taken.key + " = " + taken.value;
    sheet_.line(line);
  }

  void reconciliation() {
    const Reconciliation& r = *model_.reconciliation;
    sheet_.heading("Config against checkpoint");
    std::vector<std::vector<std::string>> cells;
    for (const ReconcileLine& line : r.lines) {
      cells.push_back({line.what,
                       line.tensors == 0 ? "" : fmt::format("{} tensors", with_thousands(line.tensors)),
                       signed_number(line.elements)});
    }
    cells.push_back({"expected", "", with_thousands(r.expected)});
    cells.push_back({"stored", fmt::format("{} tensors", with_thousands(r.stored.tensors)),
                     with_thousands(r.stored.elements)});
    cells.push_back({"difference", "", r.difference == 0 ? "0" : signed_number(r.difference)});
    sheet_.table({"", "", "ELEMENTS"}, {kLeft, kRight, kRight}, cells);
    std::string types;
    for (const auto& [type, tally] : r.types) {
      types += fmt::format("{}{} {} in {} tensors", types.empty() ? "" : "; ", name(type),
                           with_thousands(tally.elements), with_thousands(tally.tensors));
    }
    sheet_.line(fmt::format("{} bytes: {}", with_thousands(r.stored.bytes), types));
    if (r.difference != 0)
      sheet_.line(fmt::format(
          "the difference is made of {} missing, {} misshapen and {} unknown tensors, named below",
          r.missing_tensors, r.misshapen_tensors, r.extra.tensors));
  }

  void findings() {
    if (model_.findings.empty()) return;
    sheet_.heading("Findings");
    for (const Finding& finding : model_.findings) sheet_.line(to_line(finding));
  }

  void memory_line() {
    sheet_.heading("Memory");
    std::string line = fmt::format("weights {} ({}); KV cache ", human_bytes(model_.bytes),
                                   model_.reconciliation ? "as stored" : model_.format.title);
    line += knows_cache(model_.tree) ? fmt::format("{} bytes a token ({})",
                                                   with_thousands(answer_.kv.per_token), question_.kv_dtype)
                                     : "not known";
    if (answer_.kv.state_per_sequence > 0)
      line +=
          fmt::format("; recurrent state {} bytes a sequence", with_thousands(answer_.kv.state_per_sequence));
    sheet_.line(line);
  }

  void memory() {
    sheet_.heading("Weights, by the form they are stored in");
    std::vector<std::vector<std::string>> cells;
    for (const WeightFormat& format : weight_formats()) {
      const WeightBytes bytes = weight_bytes(model_.tree, format);
      const bool gguf =
          format.kind == WeightFormat::Kind::gguf;  // conversions leave the prediction layer out
      const double bits = 8 * static_cast<double>(bytes.main) / static_cast<double>(model_.totals.total);
      cells.push_back({format.title, human_bytes(bytes.main), with_thousands(bytes.main),
                       fmt::format("{:.2f}", bits), gguf || bytes.mtp == 0 ? "" : human_bytes(bytes.mtp)});
    }
    sheet_.table({"FORM", "MAIN", "BYTES", "BITS EACH", "MTP"}, {kLeft, kRight, kRight, kRight, kRight},
                 cells);

    if (knows_cache(model_.tree)) cache();
    sheet_.line(fmt::format("activations, an estimate: {} = {}", human_bytes(answer_.activations.bytes),
                            answer_.activations.formula));
  }

  void cache() {
    const KvCache& kv = answer_.kv;
    sheet_.heading(fmt::format("KV cache, {}", question_.kv_dtype));
    std::vector<std::vector<std::string>> lines = {{"a token", with_thousands(kv.per_token)}};
    if (kv.state_per_sequence > 0) {
      lines.push_back({"a sequence, for recurrent states in F32",
                       with_thousands(kv.state_per_sequence - kv.state_convolutions)});
      if (kv.state_convolutions > 0)
        lines.push_back({"a sequence, for convolutions in BF16", with_thousands(kv.state_convolutions)});
    }
    if (kv.per_token_beyond != kv.per_token)
      lines.push_back({"a token, once windows are full", with_thousands(kv.per_token_beyond)});
    if (kv.indexer_per_token > 0)
      lines.push_back({"a token, for the indexer", with_thousands(kv.indexer_per_token)});
    if (kv.expanded_per_token > 0)
      lines.push_back(
          {"a token, if keys and values were cached per head", with_thousands(kv.expanded_per_token)});
    lines.push_back(
        {fmt::format("{} × {} tokens", with_thousands(question_.batch), with_thousands(question_.context)),
         with_thousands(kv.bytes)});
    sheet_.table({"", "BYTES"}, {kLeft, kRight}, lines);
  }

  void compute() {
    const ComputeReport& c = answer_.compute;
    sheet_.heading(fmt::format("Compute at a context of {} tokens", with_thousands(c.context)));
    std::vector<std::vector<std::string>> cells;
    for (const ComputeRow& row : c.rows)
      cells.push_back({row.what, with_thousands(row.decode), percent(row.decode, c.decode),
                       rate(static_cast<double>(row.prefill), "FLOP")});
    cells.push_back({"all", with_thousands(c.decode), "", with_thousands(c.prefill) + " FLOP"});
    sheet_.table({"", "FLOP, NEXT TOKEN", "SHARE", "WHOLE PROMPT"}, {kLeft, kRight, kRight, kRight}, cells);
    if (c.decode_absorbed != c.decode)
      sheet_.line(fmt::format("next token over the latent cache (absorbed MLA): {} FLOP",
                              with_thousands(c.decode_absorbed)));
    sheet_.line(fmt::format("decode attention does {:.1f} FLOP a byte of BF16 cache: {}",
                            c.attention_intensity, c.intensity_formula));

    sheet_.heading(
        "Where attention catches up with the MLP (keys a query sees; a causal prompt averages half)");
    cells.clear();
    for (const Crossing& x : c.crossings) {
      std::string layers = x.layers + (x.absorbed ? ", absorbed" : "");
      if (x.window > 0) layers += fmt::format(", window {}", x.window);
      const auto keys = [](double value) {
        return with_thousands(static_cast<std::uint64_t>(std::llround(value)));
      };
      cells.push_back(
          {layers, keys(x.block_equals_mlp), keys(x.scores_equal_mlp), keys(x.scores_equal_linear)});
    }
    sheet_.table({"LAYERS", "ATTENTION = MLP", "SCORES = MLP", "SCORES = ALL MATRICES"},
                 {kLeft, kRight, kRight, kRight}, cells);

    const Roofline r = roofline(model_, question_, answer_);
    sheet_.heading("One decoding step");
    sheet_.line(fmt::format("reads {} of weights ({}) and {} of cache, computes {}",
                            human_bytes(r.weight_bytes), question_.plan.format.title, human_bytes(r.kv_bytes),
                            rate(static_cast<double>(r.flops), "FLOP")));
    if (r.tokens_per_second > 0) {
      const char* bound =
          r.by_bandwidth > 0 && r.tokens_per_second == r.by_bandwidth ? "bandwidth" : "arithmetic";
      sheet_.line(fmt::format("roofline: at most {:.1f} tokens/s for {} sequences, bound by {}",
                              r.tokens_per_second, question_.batch, bound));
    }
  }

  void plan() {
    const Plan& p = *answer_.plan;
    const PlanOptions& o = question_.plan;
    sheet_.heading(fmt::format("Plan {} on {} GPUs, {}", p.layout.text(), p.layout.ranks(), o.format.title));
    std::string whose;
    for (const EngineAt& engine : o.engines) whose += (whose.empty() ? "" : ", ") + engine.text();
    sheet_.line(fmt::format("held against the rules of {}", whose));
    std::set<std::string> seen;
    for (const Refusal& r : p.refusals) {
      const std::string line = fmt::format("{} ({}): {}", r.part, r.tensors, r.arithmetic);
      if (!seen.insert(line).second) continue;
      sheet_.line(line);
      std::vector<std::pair<std::string, std::string>> said;  // a message, and who will say it
      for (const Refusal& other : p.refusals) {
        if (other.part != r.part || other.arithmetic != r.arithmetic || other.tensors != r.tensors) continue;
        const auto known =
            std::find_if(said.begin(), said.end(), [&](const auto& s) { return s.first == other.message; });
        if (known == said.end())
          said.emplace_back(other.message, title(other.engine.engine));
        else
          known->second += fmt::format(", {}", title(other.engine.engine));
      }
      for (const auto& [message, who] : said) sheet_.line(fmt::format("    {}: {}", who, message));
    }
    for (const std::string& note : p.notes) sheet_.line("note: " + note);
    load(p);
    ranks(answer_.ranks);
    sheet_.heading("What one rank holds");
    std::vector<std::vector<std::string>> cells;
    for (const CutRow& row : answer_.cuts) cells.push_back({row.tensor, row.how, row.shape});
    sheet_.table({"TENSOR", "CUT", "SHAPE ON A RANK"}, {kLeft, kLeft, kLeft}, cells);
    if (answer_.ways.empty()) return;
    sheet_.heading("Ways out, in the order to try");
    std::size_t number = 0;
    for (const WayOut& way : answer_.ways) {
      sheet_.line(fmt::format("{}. {}: {}", ++number, way.what, way.outcome));
      if (!way.command.empty() && way.launches) sheet_.line("     " + way.command);
    }
  }

  // Neighbours that hold as much, in a row.
  void ranks(const PlannedRanks& planned) {
    if (!planned.why_none.empty()) sheet_.line(planned.why_none);
    if (planned.ranks.size() < 2) return;
    const auto alike = [](const RankWeights& a, const RankWeights& b) {
      return a.place.stage() == b.place.stage() && a.bytes == b.bytes && a.parameters == b.parameters;
    };
    std::vector<std::vector<std::string>> cells;
    for (std::size_t first = 0, next = 0; first < planned.ranks.size(); first = next) {
      const RankWeights& rank = planned.ranks[first];
      while (next < planned.ranks.size() && alike(rank, planned.ranks[next])) ++next;
      cells.push_back({next - first == 1 ? std::to_string(first) : fmt::format("{} to {}", first, next - 1),
                       fmt::format("{}", rank.place.stage() + 1), with_thousands(rank.parameters),
                       with_thousands(rank.bytes)});
    }
    sheet_.heading(fmt::format("Weights of each rank, as {} deals them out", planned.engine->text()));
    sheet_.table({"RANKS", "STAGE", "PARAMETERS", "BYTES"}, {kLeft, kRight, kRight, kRight}, cells);
  }

  void load(const Plan& p) {
    const RankLoad& l = p.load;
    std::vector<std::vector<std::string>> cells = {
        {"parameters", with_thousands(l.parameters), ""},
        {"weights", human_bytes(l.weight_bytes), with_thousands(l.weight_bytes)},
        {fmt::format("KV cache, {} × {} tokens", with_thousands(question_.batch),
                     with_thousands(question_.context)),
         human_bytes(l.kv_bytes), with_thousands(l.kv_bytes)},
        {"activations, an estimate", human_bytes(l.activation_bytes), ""},
        {"together", human_bytes(l.total()), with_thousands(l.total())}};
    if (p.budget > 0) {
      cells.push_back({fmt::format("usable, {:.0f}% of {}", 100 * question_.plan.usable,
                                   human_bytes(question_.plan.gpu_memory)),
                       human_bytes(p.budget), p.fits() ? "" : "too small"});
      if (p.tokens_that_fit > 0)
        cells.push_back({"KV tokens that fit, over all ranks", with_thousands(p.tokens_that_fit), ""});
    }
    sheet_.heading(
        fmt::format("The fullest rank{}",
                    p.layout.pp > 1 ? fmt::format(" (stage {} of {})", l.stage + 1, p.layout.pp) : ""));
    sheet_.table({"", "", ""}, {kLeft, kRight, kRight}, cells);
  }

  void search() {
    sheet_.heading(fmt::format("Plans for {} GPUs that launch, best first", question_.search_gpus));
    std::vector<std::vector<std::string>> cells;
    constexpr std::size_t kShown = 20;
    for (const Plan& p : answer_.found) {
      if (cells.size() == kShown) break;
      cells.push_back({p.layout.text(), human_bytes(p.load.weight_bytes), human_bytes(p.load.total()),
                       p.tokens_that_fit == 0 ? "" : with_thousands(p.tokens_that_fit)});
    }
    sheet_.table({"PLAN", "WEIGHTS A GPU", "IN ALL", "KV TOKENS"}, {kLeft, kRight, kRight, kRight}, cells);
    if (answer_.found.size() > kShown) sheet_.line(fmt::format("and {} more", answer_.found.size() - kShown));
  }

  const Model& model_;
  const Question& question_;
  const Answer& answer_;
  const RenderSettings& settings_;
  Sheet sheet_;
};

void csv_rows(std::string& out, const std::vector<Row>& rows, int depth, int most) {
  const auto cell = [&](std::string text) {
    const bool quote = text.find_first_of(",\"\r\n") != std::string::npos;
    // A spreadsheet would run a cell that begins like a formula.
    if (!text.empty() && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@'))
      text.insert(0, "'");
    if (!quote) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
  };
  if (depth >= most) return;
  for (const Row& row : rows) {
    out += fmt::format("{},{},{},{},{},{},{},{},{}\r\n", depth, cell(row.title), cell(row.path), row.count,
                       row.params, row.total, row.active, row.bytes, cell(row.formula));
    csv_rows(out, row.children, depth + 1, most);
  }
}

}  // namespace

std::string verdict_line(const Model& model, const Answer& answer) {
  if (answer.searched)
    return answer.found.empty() ? "infeasible: no plan launches on these GPUs"
                                : fmt::format("feasible: {} plans, best {}", answer.found.size(),
                                              answer.found[0].layout.text());
  if (answer.plan) {
    if (answer.plan->launches()) return fmt::format("feasible: {}", answer.plan->layout.text());
    std::set<std::string> engines;
    for (const Refusal& refusal : answer.plan->refusals) engines.insert(refusal.engine.text());
    std::string who;
    for (const std::string& engine : engines) who += (who.empty() ? "" : ", ") + engine;
    if (!who.empty()) return fmt::format("infeasible: {} would refuse {}", who, answer.plan->layout.text());
    const std::string counted =
        answer.plan->counted_as_dtype.empty()
            ? ""
            : fmt::format(", if it were not quantized: what {} stores is not known, --weights FORM tells it",
                          answer.plan->counted_as_dtype);
    return fmt::format("infeasible: {} does not fit: {} of {} a GPU{}", answer.plan->layout.text(),
                       human_bytes(answer.plan->load.total()), human_bytes(answer.plan->budget), counted);
  }
  std::string sum = fmt::format("{} parameters, {} activated a token", with_thousands(model.totals.total),
                                with_thousands(model.totals.active));
  if (!knows_activation(model.tree))
    sum = fmt::format("{} parameters, how many are activated a token is not known",
                      with_thousands(model.totals.total));
  if (model.totals.total == 0 && model.totals.towers > 0)  // an mmproj file
    sum = fmt::format("{} parameters of towers and projectors", with_thousands(model.totals.towers));
  if (has_errors(model.findings)) return sum + "; the checkpoint does not hold what its config says";
  if (model.tree.derived) return sum + "; counted by the headers, with nothing to hold them against";
  if (model.reconciliation && model.reconciliation->difference == 0)
    return sum + "; the checkpoint holds exactly these";
  return sum;
}

std::string render_table(const Model& model, const Question& question, const Answer& answer,
                         const RenderSettings& settings) {
  return Report(model, question, answer, settings, false).run();
}
std::string render_markdown(const Model& model, const Question& question, const Answer& answer,
                            const RenderSettings& settings) {
  return Report(model, question, answer, settings, true).run() + "\n**" + verdict_line(model, answer) +
         "**\n";
}

std::string render_csv(const Model& model, const RenderSettings& settings) {
  std::string out = "depth,module,path,times,each,total,active,bytes,arithmetic\r\n";
  csv_rows(out, model.rows, 0, settings.depth);
  return out;
}

std::string render_diff(const Model& left, const Model& right, const RenderSettings& settings,
                        bool markdown) {
  Sheet sheet(markdown);
  sheet.heading(fmt::format("{} against {}", left.source.string(), right.source.string()));
  std::vector<std::vector<std::string>> cells;
  const auto add = [&](const std::string& title, std::optional<std::uint64_t> a,
                       std::optional<std::uint64_t> b) {
    const auto difference =
        static_cast<std::int64_t>(b.value_or(0)) - static_cast<std::int64_t>(a.value_or(0));
    cells.push_back({title, a ? with_thousands(*a) : "absent", b ? with_thousands(*b) : "absent",
                     difference == 0 ? "" : signed_number(difference)});
  };
  for (const DiffRow& row : diff_rows(left.rows, right.rows)) {
    if (row.depth >= settings.depth) continue;
    add(std::string(static_cast<std::size_t>(2 * row.depth), ' ') + row.title, row.left, row.right);
    if (!settings.formulas || (row.left_formula == row.right_formula)) continue;
    const std::string indent(static_cast<std::size_t>(2 * row.depth + 2), ' ');
    cells.push_back({indent + row.left_formula + "  |  " + row.right_formula, "", "", ""});
  }
  const Totals &a = left.totals, &b = right.totals;
  add("total", a.total, b.total);
  add("activated", a.active, b.active);
  add("activated without input embedding", a.active_without_embedding, b.active_without_embedding);
  add("MTP, own", a.mtp_own, b.mtp_own);
  add("bytes", left.bytes, right.bytes);
  sheet.table({"MODULE", left.tree.architecture, right.tree.architecture, "DIFFERENCE"},
              {kLeft, kRight, kRight, kRight}, cells);
  return sheet.take();
}

}  // namespace assay
