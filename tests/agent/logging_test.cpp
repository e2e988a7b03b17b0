#include "agent/logging.hpp"

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

}  // namespace
}  // namespace haulout::agent
