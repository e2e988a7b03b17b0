#include "agent/config/value_checks.hpp"

#include "tests/agent/config/support.hpp"

namespace haulout::agent {
namespace {

using Strings = std::vector<std::string>;

struct CheckRow {
  ValueCheck check;
  Strings good;
  Strings bad;
};

TEST(ValueChecksTest, GoodAndBad) {
  const std::string long_label(63, 'a');
  const std::vector<CheckRow> rows = {
      {check_dns_label,
       {"a", "0", "a-b", long_label},
       {"", "-a", "a-", "A", "a.b", "a_b", "\xC3\xA9", long_label + "a"}},
      {check_node_name,
       {"a", "ip-10-0-0-1.eu-west-1.compute.internal", long_label + "." + long_label},
       {"", ".", "a.", ".a", "a..b", "A", "a/b", "a b",
        long_label + "." + long_label + "." + long_label + "." + long_label}},
      {check_absolute_path, {"/", "/a b"}, {"", "a", "./a", "~"}},
      {check_url,
       {"http://h", "https://h:8443/path/", "http://[::1]:80", "http://10.0.0.1"},
       {"", "h", "h:80", "ftp://h", "unix:/run/x.sock", "http://", "http://u:p@h", "http://h?q=1", "http://h#f",
        "HTTP//h"}},
      {check_bundle,
       {"/data/a.raucb", "https://h/a.raucb", "http://h:8080/a.raucb"},
       {"", "a.raucb", "--help", "ftp://h/a", "https://u:p@h/a", "../a"}},
      {check_label_key,
       {"zone", "topology.kubernetes.io/zone", "a_b.C-d"},
       {"", "a=b", "!a", "a,b", " a", "a ", "a/b/c", "-a", "a in (b)"}},
      {check_label_selector, {"a", "a=b,c!=d", "a in (b,c)"}, {"", " ", "a in (b", "=b", "a=b c"}},
      {check_listen_address,
       {":9090", "127.0.0.1:9090", "[::1]:0", "localhost:65535", "[::]:80"},
       {"", "9090", "127.0.0.1", "::1:9090", "h:65536", "h:-1", "h:", "h:x", "http://h:80", "h:80/", "a b:80"}},
      {check_max_unavailable,
       {"0", "1", "250", "0%", "1%", "100%"},
       {"", "101%", "-1", "+1", "1.5", "%", "1%%", "10 %", "99999999999", "all"}},
      {check_window,
       {"22:00+4h", "Mon-Fri 22:00-04:00 Europe/Berlin", "cron(0 2 * * 1-5)+3h"},
       {"", "22", "2026-12-20"}},
      {check_blackout, {"2026-12-20", "2026-12-20..2027-01-03", "Sat 00:00"}, {"", "2026-12-32"}},
      {check_not_blank, {"a", " a "}, {"", " ", "\t\n"}},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::string& text : rows[i].good) EXPECT_EQ(rows[i].check(text), "") << "row " << i << ": " << text;
    for (const std::string& text : rows[i].bad) EXPECT_NE(rows[i].check(text), "") << "row " << i << ": " << text;
  }
}

struct Split {
  std::string text;
  Strings words;
};

TEST(ValueChecksTest, WordsAreSplitLikeAShellsWithoutItsMagic) {
  const std::vector<Split> rows = {
      {"a", {"a"}},
      {"  /bin/x  -r\t--y=1 ", {"/bin/x", "-r", "--y=1"}},
      {"a 'b c' \"d e\"", {"a", "b c", "d e"}},
      {"a b' 'c", {"a", "b c"}},
      {"a ''", {"a", ""}},
      {"a \"\"", {"a", ""}},
      {"a b\\ c", {"a", "b c"}},
      {"a \"b\\\"c\"", {"a", "b\"c"}},
      {"a 'b\\c'", {"a", "b\\c"}},
      {"a $HOME|b;c&&d>e *", {"a", "$HOME|b;c&&d>e", "*"}},
  };
  for (const Split& row : rows) {
    Strings words;
    EXPECT_EQ(split_words(row.text, words), "") << row.text;
    EXPECT_EQ(words, row.words) << row.text;
    Strings again;
    EXPECT_EQ(split_words(quoted_words(words), again), "") << row.text;
    EXPECT_EQ(again, words) << quoted_words(words);
  }
}

TEST(ValueChecksTest, WordsThatAreRefusedChangeNothing) {
  for (const char* text : {"", "  ", "'a", "\"a", "a 'b", "a\\", "''", "'' a"}) {
    Strings words = {"before"};
    EXPECT_NE(split_words(text, words), "") << text;
    EXPECT_EQ(words, Strings{"before"}) << text;
  }
}

TEST(ValueChecksTest, ExitCodes) {
  std::map<int, bool> codes;
  EXPECT_EQ(parse_exit_codes("0=no,100=yes,255=yes", codes), "");
  EXPECT_EQ(codes, (std::map<int, bool>{{0, false}, {100, true}, {255, true}}));
  for (const char* text : {"", "0", "0=", "=yes", "0=maybe", "256=yes", "-1=yes", "0=yes,", "0=yes,0=no", "0=yes;1=no",
                           "0 = yes", "1=no"}) {
    std::map<int, bool> kept = {{7, true}};
    EXPECT_NE(parse_exit_codes(text, kept), "") << text;
    EXPECT_EQ(kept.size(), 1u) << text;
  }
}

}  // namespace
}  // namespace haulout::agent
