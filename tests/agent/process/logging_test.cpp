#include "agent/process/logging.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "sim/virtual_clock.hpp"

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class LoggingTest : public ::testing::Test {
 protected:
  std::vector<std::string> written(LogOptions options, Severity severity, std::string_view message,
                                   const Log::Fields& fields = {}) {
    std::vector<std::string> lines;
    Log log(options, clock, [&lines](const std::string& line) { lines.push_back(line); });
    log.write(severity, message, fields);
    return lines;
  }
  boost::asio::io_context context{1};
  sim::VirtualClock clock{context};
};

TEST_F(LoggingTest, VerbosityDecidesWhatIsWritten) {
  const std::vector<std::tuple<unsigned, Severity, std::size_t>> rows = {
      {0, Severity::debug, 0}, {0, Severity::info, 0}, {0, Severity::warning, 1}, {0, Severity::error, 1},
      {1, Severity::debug, 0}, {1, Severity::info, 1}, {2, Severity::debug, 1},   {9, Severity::debug, 1},
  };
  for (const auto& [verbosity, severity, count] : rows)
    EXPECT_THAT(written({LogFormat::text, verbosity}, severity, "m"), SizeIs(count))
        << verbosity << " " << to_string(severity);
}

TEST_F(LoggingTest, JsonLinesHoldTheFields) {
  const auto lines = written({LogFormat::json, 1}, Severity::info, "re\"quest", {{"method", "GET"}, {"ms", "7"}});
  ASSERT_THAT(lines, SizeIs(1));
  const auto json = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(json["level"], "info");
  EXPECT_EQ(json["message"], "re\"quest");
  EXPECT_EQ(json["method"], "GET");
  EXPECT_EQ(json["ms"], "7");
  EXPECT_TRUE(json.contains("time"));
}

TEST_F(LoggingTest, TextLinesAreOneLineEach) {
  const auto lines = written({LogFormat::text, 1}, Severity::warning, "two\nlines", {{"a", "x\x1b[2J"}});
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("two lines a=x"));
  EXPECT_THAT(lines[0], Not(HasSubstr("\x1b")));
}

// `kubectl logs` writes log lines to a terminal unchanged. So control characters must not get into them.
TEST_F(LoggingTest, NoLineHasControlCharacters) {
  const std::string steering =
      "a\x7f"
      "b\xC2\x9B"
      "31mc\xC2\xA0"
      "d\x1b[2J";
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const auto lines = written({format, 1}, Severity::warning, steering, {{"field", steering}});
    ASSERT_THAT(lines, SizeIs(1));
    for (const char* control : {"\x7f", "\xC2\x9B", "\x1b"}) EXPECT_THAT(lines[0], Not(HasSubstr(control)));
    EXPECT_THAT(lines[0], HasSubstr("\xC2\xA0")) << "a space is none";
    if (format == LogFormat::json) EXPECT_EQ(nlohmann::json::parse(lines[0])["message"], steering);
  }
}

TEST_F(LoggingTest, LinesOfTheJournalBeginWithTheirPriority) {
  const std::pair<Severity, const char*> rows[] = {{Severity::error, "<3>error   m"},
                                                   {Severity::warning, "<4>warning m"},
                                                   {Severity::notice, "<5>notice  m"},
                                                   {Severity::info, "<6>info    m"},
                                                   {Severity::debug, "<7>debug   m"}};
  for (const auto& [severity, line] : rows)
    EXPECT_THAT(written({LogFormat::text, 2, true}, severity, "m"), ::testing::ElementsAre(line)) << "without a time";
  EXPECT_THAT(written({LogFormat::json, 2, true}, Severity::error, "m")[0], ::testing::StartsWith("<3>{\"time\":"));
}

TEST(JournalTest, ItIsTheStreamThatSystemdHasNamed) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  struct stat status{};
  ASSERT_EQ(::fstat(ends[1], &status), 0);
  const std::string stream = fmt::format("{}:{}", status.st_dev, status.st_ino);
  EXPECT_TRUE(is_journal(stream, ends[1]));
  EXPECT_FALSE(is_journal(fmt::format("{}:{}", status.st_dev, status.st_ino + 1), ends[1])) << "of the parent, perhaps";
  for (const char* nonsense : {"", ":", "1", "x:y"}) EXPECT_FALSE(is_journal(nonsense, ends[1])) << nonsense;
  for (const int end : ends) ::close(end);
  EXPECT_FALSE(is_journal(stream, -1));
}

}  // namespace
}  // namespace haulout::agent
