// What grammars read and refuse, by hand and against a plain reading of the same grammar.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/system/error.h"
#include "refimpl/grammar/matcher.h"
#include "refimpl/grammar/utf8.h"

namespace assay::grammar {
namespace {

bool reads(Matcher& matcher, std::string_view text) {
  const StateId state = matcher.read(matcher.start(), text);
  return state != kDead && matcher.accepts(state);
}

struct Case {
  const char* grammar;
  std::vector<std::string> read, refused;
};

void check(const Case& c) {
  Matcher matcher(Automaton(parse_gbnf(c.grammar, "case.gbnf")));
  for (const std::string& text : c.read) EXPECT_TRUE(reads(matcher, text)) << c.grammar << "\n" << text;
  for (const std::string& text : c.refused) EXPECT_FALSE(reads(matcher, text)) << c.grammar << "\n" << text;
}

TEST(Gbnf, Constructs) {
  check({R"(root ::= "yes" | "no")", {"yes", "no"}, {"", "y", "yesno", "yes ", "Yes"}});
  check({"root ::= a b?\na ::= \"x\" # a comment | \"y\"\n\n# another\nb ::=\n  \"1\" |\n  \"2\"\n",
         {"x", "x1", "x2"},
         {"", "y", "x3", "x12"}});
  check({"root ::= (\n \"a\"\n | \"b\" # here\n)+", {"a", "abba"}, {"", "c"}});
  check({"root ::= [a-cx]* [^a-c\\n]", {"d", "abcx!", "é", "xx"}, {"", "a", "ab", "\n"}});
  check({"root ::= [a-] [-b] [\\]\\[]", {"-b]", "a-["}, {"bb]", "aa]"}});
  check({"root ::= .",
         {"a", "\n", "é", "語", "😀"},
         {"", "ab", "\xC3", "\xA9", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80"}});
  check({"root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2} \"d\"{0}",
         {"aab", "aabbbcc"},
         {"ab", "aaab", "aaccc", "aabccc", "aabd"}});
  check({"root ::= \"a\" { 2 , 3 }", {"aa", "aaa"}, {"a", "aaaa"}});
  check({"root ::= (\"a\" \"b\"?){2,3}", {"aa", "aba", "ababab"}, {"a", "aaaa", "b"}});
  check({R"(root ::= "\x41\u00e9\U0001F600\t\r\n\\\"\[\]")", {"Aé😀\t\r\n\\\"[]"}, {"A"}});
  check({"root ::= \"\" | \"x\"", {"", "x"}, {"y"}});
  check({"root ::= (\"a\"?)* \"b\"", {"b", "aab"}, {"", "a"}});
  check({"root ::= ((\"a\"?){0,3})* [b]+", {"b", "aaaaaabb"}, {"a"}});
  check({"root ::= list-1\nlist-1 ::= \"(\" (list-1 (\",\" list-1)*)? \")\"",
         {"()", "((),())", "((((()))))"},
         {"(", "(,)", "())"}});
  check({"root ::= [\\u0400-\\u04FF]+ | [あ-ん]{1,2} | [😀-😎]",
         {"Привет", "あん", "😁"},
         {"Priwet", "ありん", "😏"}});
  check({"root ::= dead | \"x\"\ndead ::= \"x\" dead", {"x"}, {"xx"}});
  check({"root ::= \"a\"\r\n  \r\nother ::= root", {"a"}, {"b"}});
}

// As the well-known examples are built: lists of lines, sums, moves, a piece of C, Japanese text.
TEST(Gbnf, GrammarsOfTheWild) {
  check({"root ::= item+\nitem ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\"",
         {"- a\n- b c\n", "- ü\n"},
         {"", "- \n", "- a", "a\n", "- a\xE2\x80\xA8\n"}});
  check(
      {"root ::= (expr \"=\" ws term \"\\n\")+\nexpr ::= term ([-+*/] term)*\n"
       "term ::= ident | num | \"(\" ws expr \")\" ws\nident ::= [a-z] [a-z0-9_]* ws\nnum ::= [0-9]+ ws\nws "
       "::= [ \\t\\n]*",
       {"1+2=3\n", "(a1 +2)*3 = x\n", "((1))=1\n2=2\n"},
       {"1+=2\n", "1+2\n", "=1\n"}});
  check(
      {"root ::= \"1. \" move \" \" move \"\\n\" ([1-9] [0-9]? \". \" move \" \" move \"\\n\")*\n"
       "move ::= (pawn | piece | castle) [+#]?\npiece ::= [NBKQR] [a-h]? [1-8]? \"x\"? [a-h] [1-8]\n"
       "pawn ::= ([a-h] \"x\")? [a-h] [1-8] (\"=\" [NBKQR])?\ncastle ::= \"O-O\" \"-O\"?",
       {"1. e4 e5\n2. Nf3 Nc6\n", "1. d4 Nf6\n10. O-O-O+ exd8=Q#\n"},
       {"1. e4\n", "2. e4 e5\n", "1. e9 e5\n"}});
  check(
      {"root ::= (declaration)*\ndeclaration ::= type id \"(\" parameter? \")\" \"{\" statement* \"}\"\n"
       "type ::= (\"int\" | \"float\" | \"char\") ws\nid ::= [a-zA-Z_] [a-zA-Z_0-9]*\nparameter ::= type id\n"
       "statement ::= type id ws \"=\" ws expression \";\" | \"while\" \"(\" condition \")\" \"{\" "
       "statement* \"}\" | \"return\" ws expression \";\"\n"
       "condition ::= expression (\"<=\" | \"<\" | \"==\") expression\nexpression ::= term ((\"+\" | \"-\") "
       "term)*\n"
       "term ::= factor ((\"*\" | \"/\") factor)*\nfactor ::= id | [0-9]+ | \"(\" expression \")\"\nws ::= [ "
       "\\t\\n]+",
       {"int f(){return 1;}", "int f(int x){while(x<10){int y = x*(2+3);}return y;}", ""},
       {"int f({return 1;}", "void f(){}", "int f(){return ;}"}});
  check(
      {"root ::= jp+ ([ \\t\\n] jp+)*\njp ::= hiragana | katakana | [、-〾] | cjk\nhiragana ::= [ぁ-ゟ]\n"
       "katakana ::= [ァ-ヿ]\ncjk ::= [一-龯]",
       {"これは日本語。", "カタカナ ひらがな"},
       {"", "abc", "これは x"}});
}

TEST(Gbnf, WhatIsRefusedIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "'root'"},
      {"a ::= \"x\"", "'root'"},
      {"root ::= a", "'a' is not defined"},
      {"root ::= \"a\"\nroot ::= \"b\"", "'root' is defined twice"},
      {"root ::= root \"a\" | \"b\"", "'root' is left recursive"},
      {"root ::= a\na ::= b* a \"x\"\nb ::= \"y\"", "'a' is left recursive"},
      {"root ::= a\na ::= \"\" b\nb ::= c?  a\nc ::= \"c\"", "left recursive"},
      {"root ::= \"x\" root", "never comes to an end"},
      {"root ::= \"a", "no end"},
      {"root ::= [a", "no end"},
      {"root ::= []", "holds nothing"},
      {"root ::= [b-a]", "backwards"},
      {"root ::= [^\\x00-\\U0010FFFF]", "holds nothing"},
      {"root ::= (\"a\"", "')'"},
      {"root ::= \"a\")", "end was expected"},
      {"root ::= *", "repeats nothing"},
      {"root ::= \"a\"{}", "a number"},
      {"root ::= \"a\"{2,1}", "below"},
      {"root ::= \"a\"{1,2", "'}'"},
      {"root ::= \"a\"{1,100001}", "100000 repetitions"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= \"\\u12\"", "4 hexadecimal"},
      {"root ::= \"\\uD800\"", "no such character"},
      {"root ::= \"\\U00110000\"", "no such character"},
      {"root ::= \"\xFF\"", "not UTF-8"},
      {"root ::= <think>", "tokens in a grammar"},
      {"root = \"a\"", "'::='"},
      {"root ::= \"a\"\n::= \"b\"", "a name"},
      {"root ::= a_b", "end was expected"},
      {"root ::= \"a\"????????????", "more than 8"},
  };
  for (const auto& [grammar, said] : cases) {
    try {
      Matcher matcher(Automaton(parse_gbnf(grammar, "bad.gbnf")));
      ADD_FAILURE() << grammar;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input) << grammar;
      EXPECT_NE(error.message().find(said), std::string::npos) << grammar << ": " << error.message();
    }
  }
}

TEST(Gbnf, TooMuchIsRefusedInTime) {
  const auto refused = [](const std::string& grammar, const std::string& text) {
    try {
      Matcher matcher(Automaton(parse_gbnf(grammar, "big.gbnf")),
                      {.places_of_a_state = 1000, .places = 100'000});
      matcher.read(matcher.start(), text);
      return false;
    } catch (const Error& error) {
      return error.kind() == ErrorKind::input;
    }
  };
  EXPECT_TRUE(refused("root ::= " + std::string(300, '(') + "\"a\"" + std::string(300, ')'), ""));
  EXPECT_TRUE(
      refused("root ::= (((\"a\"{1000}){1000}){1000}){1000} (" + std::string(600'000, '.') + ")", ""));
  // Each x may be read by either of two rules that remember which.
  EXPECT_TRUE(refused("root ::= s\ns ::= \"x\" s \"a\" | \"x\" s \"b\" | \"c\"", std::string(30, 'x')));
  EXPECT_THROW(Matcher(Automaton(parse_gbnf("root ::= [a] | [b] | [c] | [d] | [e] | [f]", "wide.gbnf")),
                       {.places_of_a_state = 5}),
               Error);
  // Nested repetitions cost what is written, not their product.
  Matcher nested(Automaton(parse_gbnf("root ::= (((\"a\"{1000}){1000}){1000}){1000}", "nested.gbnf")));
  EXPECT_NE(nested.read(nested.start(), std::string(5000, 'a')), kDead);
  // A long way down and up again.
  Matcher deep(Automaton(parse_gbnf("root ::= \"(\" root \")\" | \"x\"", "deep.gbnf")));
  EXPECT_TRUE(reads(deep, std::string(20'000, '(') + "x" + std::string(20'000, ')')));
}

TEST(Gbnf, ClassesOfCharactersAreExactlyTheirs) {
  const std::vector<CodeRange> ranges = {{0x41, 0x41},        {0x7E, 0x81},      {0x7FD, 0x803},
                                         {0xD7FE, 0xE001},    {0xFFFE, 0x10002}, {0x2F0F5, 0x3AB12},
                                         {0x10FFFE, 0x10FFFF}};
  Grammar grammar;
  grammar.rules.push_back({"root", {}});
  grammar.rules[0].body.kind = Expression::Kind::characters;
  grammar.rules[0].body.characters = tidy(ranges);
  Matcher matcher{Automaton(grammar)};
  for (std::uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    bool inside = false;
    for (const CodeRange& r : ranges) inside |= r.first <= c && c <= r.last;
    ASSERT_EQ(reads(matcher, utf8_of(c)), inside) << c;
  }
}

// ---- against a plain reading

// All the places at which `e`, begun at `from`, may end.
class PlainReader {
 public:
  PlainReader(const Grammar& grammar, std::u32string text) : grammar_(grammar), text_(std::move(text)) {}
  bool whole() { return of_rule(grammar_.root, 0).contains(text_.size()); }

 private:
  using Ends = std::set<std::size_t>;
  Ends of_rule(std::size_t rule, std::size_t from) {
    const auto known = known_.find({rule, from});
    if (known != known_.end()) return known->second;
    return known_[{rule, from}] = of(grammar_.rules[rule].body, from);
  }
  Ends of(const Expression& e, std::size_t from) {
    Ends ends;
    switch (e.kind) {
      case Expression::Kind::characters:
        for (const CodeRange& r : e.characters)
          if (from < text_.size() && r.first <= text_[from] && text_[from] <= r.last) ends.insert(from + 1);
        return ends;
      case Expression::Kind::rule: return of_rule(e.rule, from);
      case Expression::Kind::sequence: {
        ends = {from};
        for (const Expression& part : e.parts) ends = after(part, ends);
        return ends;
      }
      case Expression::Kind::choice:
        for (const Expression& part : e.parts) ends.merge(of(part, from));
        return ends;
      case Expression::Kind::repeat: {
        Ends at = {from};
        for (std::uint32_t i = 0; i <= std::min<std::uint32_t>(e.most, 12); ++i) {
          if (i >= e.least) ends.insert(at.begin(), at.end());
          at = after(e.parts[0], at);
        }
        return ends;
      }
    }
    return ends;
  }
  Ends after(const Expression& part, const Ends& begins) {
    Ends ends;
    for (const std::size_t at : begins) ends.merge(of(part, at));
    return ends;
  }

  const Grammar& grammar_;
  std::u32string text_;
  std::map<std::pair<std::size_t, std::size_t>, Ends> known_;
};

std::string random_expression(std::mt19937& random, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  static const char* const leaves[] = {"\"a\"",  "\"b\"", "[ab]", "[^a]", ".", "\"é\"",
                                       "\"ab\"", "\"\"",  "r1",   "r2",   "r3"};
  const int kind = depth == 0 ? 0 : pick(5);
  std::string e;
  if (kind == 0) return leaves[pick(11)];
  if (kind == 1) e = random_expression(random, depth - 1) + " " + random_expression(random, depth - 1);
  if (kind == 2) e = random_expression(random, depth - 1) + " | " + random_expression(random, depth - 1);
  if (kind >= 3) {
    static const char* const times[] = {"?", "*", "+", "{2}", "{1,3}", "{0,2}", "{2,}"};
    return "(" + random_expression(random, depth - 1) + ")" + times[pick(7)];
  }
  return "(" + e + ")";
}

TEST(Gbnf, RandomGrammarsReadWhatAPlainReadingReads) {
  std::mt19937 random(15);
  std::vector<std::u32string> texts = {U""};
  for (std::size_t i = 0; i < texts.size() && texts[i].size() < 5; ++i)
    for (const char32_t c : {U'a', U'b', U'é'}) texts.push_back(texts[i] + c);
  int grammars = 0, accepted = 0;
  while (grammars < 400) {
    std::string text = "root ::= " + random_expression(random, 3) + "\n";
    for (const char* rule : {"r1", "r2", "r3"})
      text += std::string(rule) + " ::= " + random_expression(random, 2) + "\n";
    std::optional<Grammar> grammar;
    std::unique_ptr<Matcher> matcher;
    try {
      grammar = parse_gbnf(text, "random.gbnf");
      matcher = std::make_unique<Matcher>(Automaton(*grammar));
    } catch (const Error& error) {
      continue;  // left recursive, or without an end
    }
    ++grammars;
    for (const std::u32string& t : texts) {
      std::string bytes;
      for (const char32_t c : t) bytes += utf8_of(c);
      const bool plain = PlainReader(*grammar, t).whole();
      accepted += plain ? 1 : 0;
      ASSERT_EQ(reads(*matcher, bytes), plain) << text << bytes;
    }
  }
  EXPECT_GT(accepted, 1000);
}

// A state that is not dead leads to a whole text: nothing that goes on is a trap.
TEST(Gbnf, NoStateIsATrap) {
  Matcher matcher(Automaton(parse_gbnf("root ::= \"a\" (loop | \"b\")\nloop ::= \"c\" loop\n", "trap.gbnf")));
  EXPECT_EQ(matcher.read(matcher.start(), "ac"), kDead);
  EXPECT_NE(matcher.read(matcher.start(), "a"), kDead);
}

}  // namespace
}  // namespace assay::grammar
