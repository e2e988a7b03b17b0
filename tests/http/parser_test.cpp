#include "http/parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace haulout::http {
namespace {

using ::testing::Eq;
using ::testing::Optional;

// Passes the text to the parser in pieces of `step` bytes, as a connection does. Bytes that the parser does not consume
// are passed again with the next piece.
template <class Parser>
Result<std::string> feed(Parser& parser, const std::string& text, std::size_t step) {
  std::string held;
  for (std::size_t at = 0; at < text.size() && !parser.done(); at += step) {
    held += text.substr(at, step);
    auto used = parser.put(held);
    if (!used) return used.error();
    held.erase(0, *used);
  }
  return held;
}

class ResponseInPieces : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ResponseInPieces, ChunkedBodyArrivesWhole) {
  ResponseParser parser(Limits{});
  const auto rest = feed(parser,
                         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "5\r\nhello\r\nc;x=y\r\n, big world!\r\n1\r\n\n\r\n0\r\nTrailer: x\r\n\r\n",
                         GetParam());
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_TRUE(parser.done());
  EXPECT_TRUE(parser.keep_alive());
  EXPECT_EQ(parser.head().status, 200);
  EXPECT_THAT(parser.head().headers.find("content-type"), Optional(Eq("application/json")));
  EXPECT_EQ(parser.body(), "hello, big world!\n");
}

TEST_P(ResponseInPieces, ChunkedBodyMayBeEmpty) {
  ResponseParser parser(Limits{});
  const auto rest = feed(parser, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", GetParam());
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.body(), "");
}

// The parser must return a line of a watch when its bytes arrive, not when the next bytes arrive.
TEST(ResponseParser, HoldsNoByteOfABodyBack) {
  ResponseParser parser(Limits{});
  ASSERT_TRUE(parser.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2"));
  ASSERT_TRUE(parser.put("2\r\na"));
  EXPECT_EQ(parser.body(), "a");
  ASSERT_TRUE(parser.put("b"));
  EXPECT_EQ(parser.body(), "ab");
}

TEST_P(ResponseInPieces, ContinueIsSwallowed) {
  ResponseParser parser(Limits{});
  const auto rest = feed(parser,
                         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
                         "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok",
                         GetParam());
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.head().status, 201);
  EXPECT_EQ(parser.head().headers.find("Link"), std::nullopt);
  EXPECT_EQ(parser.body(), "ok");
}

TEST_P(ResponseInPieces, NoContentHasNoBody) {
  ResponseParser parser(Limits{});
  ASSERT_TRUE(feed(parser, "HTTP/1.1 204 No Content\r\n\r\n", GetParam()));
  EXPECT_TRUE(parser.done());
  EXPECT_TRUE(parser.keep_alive());
}

TEST_P(ResponseInPieces, EndOfStreamEndsABodyOfUnknownLength) {
  ResponseParser parser(Limits{});
  ASSERT_TRUE(feed(parser, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request", GetParam()));
  EXPECT_FALSE(parser.done());
  ASSERT_TRUE(parser.put_eof());
  EXPECT_TRUE(parser.done());
  EXPECT_FALSE(parser.keep_alive());
  EXPECT_EQ(parser.body(), "Client sent an HTTP request");
}

INSTANTIATE_TEST_SUITE_P(Steps, ResponseInPieces, ::testing::Values(1, 2, 3, 7, 64, 4096));

TEST(ResponseParser, LeavesWhatBelongsToNoMessage) {
  ResponseParser parser(Limits{});
  const auto rest = feed(parser, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP", 4096);
  ASSERT_TRUE(rest);
  EXPECT_EQ(*rest, "HTTP");
}

TEST(ResponseParser, ConnectionCloseIsHeard) {
  ResponseParser parser(Limits{});
  ASSERT_TRUE(feed(parser, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 4096));
  EXPECT_TRUE(parser.done());
  EXPECT_FALSE(parser.keep_alive());
}

class ResponseCutShort : public ::testing::TestWithParam<const char*> {};

TEST_P(ResponseCutShort, IsAReset) {
  ResponseParser parser(Limits{});
  ASSERT_TRUE(feed(parser, GetParam(), 4096));
  const auto end = parser.put_eof();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code(), Errc::reset);
  EXPECT_FALSE(parser.done());
}

INSTANTIATE_TEST_SUITE_P(Texts, ResponseCutShort,
                         ::testing::Values("", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\nA: b\r\n",
                                           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
                                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
                                           "HTTP/1.1 100 Continue\r\n\r\n"));

class ResponseNonsense : public ::testing::TestWithParam<const char*> {};

TEST_P(ResponseNonsense, IsAProtocolError) {
  ResponseParser parser(Limits{200, 10});
  const auto taken = feed(parser, GetParam(), 4096);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Errc::protocol);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, ResponseNonsense,
    ::testing::Values("\x15\x03\x01 a TLS alert", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2 200 OK\r\n\r\n",
                      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
                      "HTTP/1.1 000 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
                      "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n",
                      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                      "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n2\r\nab\r\n0\r\n\r\n",
                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                      "HTTP/1.1 200 OK\r\n\r\n12345678901"));

TEST(ResponseParser, HeadLimit) {
  ResponseParser parser(Limits{200, std::nullopt});
  const auto taken = feed(parser, "HTTP/1.1 200 OK\r\nA: " + std::string(300, 'a'), 10);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Errc::protocol);
}

class RequestInPieces : public ::testing::TestWithParam<std::size_t> {};

TEST_P(RequestInPieces, TwoInARow) {
  const std::string first = "POST /api/v1/pods?x=%20 HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 4\r\n\r\nbody";
  const std::string second = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  RequestParser parser(Limits{});
  ASSERT_TRUE(feed(parser, first, GetParam()));
  ASSERT_TRUE(parser.done());
  EXPECT_TRUE(parser.keep_alive());
  EXPECT_EQ(parser.request().method, "POST");
  EXPECT_EQ(parser.request().target, "/api/v1/pods?x=%20");
  EXPECT_THAT(parser.request().headers.find("x"), Optional(Eq("y")));
  EXPECT_EQ(parser.request().body, "body");

  RequestParser next(Limits{});
  ASSERT_TRUE(feed(next, second, GetParam()));
  ASSERT_TRUE(next.done());
  EXPECT_FALSE(next.keep_alive());
  EXPECT_EQ(next.request().method, "GET");
  EXPECT_EQ(next.request().body, "");
}

TEST_P(RequestInPieces, ChunkedBodyMayBeEmpty) {
  RequestParser parser(Limits{});
  const auto rest = feed(parser, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", GetParam());
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_TRUE(parser.done());
}

INSTANTIATE_TEST_SUITE_P(Steps, RequestInPieces, ::testing::Values(1, 5, 4096));

TEST(RequestParser, TellsTooLargeFromNonsense) {
  RequestParser large(Limits{1000, 3});
  ASSERT_FALSE(feed(large, "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", 4096));
  EXPECT_TRUE(large.too_large());
  RequestParser nonsense(Limits{1000, 3});
  ASSERT_FALSE(feed(nonsense, "\x16\x03\x01 a TLS hello", 4096));
  EXPECT_FALSE(nonsense.too_large());
}

}  // namespace
}  // namespace haulout::http
